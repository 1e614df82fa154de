// What a test needs before its browser comes: sales and buyers, made over HTTP.
import { randomBytes } from "node:crypto";

/** A browser's form without the browser: the answer, and the session's cookie if it set one. */
export async function post(path, fields, cookie) {
  const answer = await fetch(process.env.E2E_URL + path, {
    method: "POST",
    headers: { accept: "application/json", ...(cookie && { cookie: `${cookie.name}=${cookie.value}` }) },
    body: new URLSearchParams(fields),
  });
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${body}`);
  const [, name, value] = answer.headers.get("set-cookie")?.match(/^([^=]+)=([^;]*)/) ?? [];
  return { value: JSON.parse(body), cookie: name && { name, value, url: process.env.E2E_URL } };
}

/** Reads, as nobody. */
export async function get(path) {
  const answer = await fetch(process.env.E2E_URL + path, { headers: { accept: "application/json" } });
  return answer.json();
}

/** The admin's session; all tests share it, so nobody signs it out. */
export const adminCookie = () => JSON.parse(process.env.E2E_ADMIN_COOKIE);

/** Does something as the admin. */
export const asAdmin = async (path, fields) => (await post(path, fields, adminCookie())).value;

/** A word that no other test uses. */
export const unique = (word) => `${word}-${randomBytes(4).toString("hex")}`;

/** A sale that opens in so many seconds (by default it is open) and then lasts so many. */
export function newSale({ opensIn = -1, lasts = 3_600, stock = 10, title = unique("Voucher"), ...rest } = {}) {
  const begin = Date.now() + opensIn * 1000;
  return asAdmin("/api/admin/create_voucher", {
    title,
    subtitle: "Hotpot for two, any day of the week",
    rules: "One per buyer. Valid for 30 days.",
    pay_cents: "8000",
    value_cents: "10000",
    stock: String(stock),
    begin: new Date(begin).toISOString(),
    end: new Date(begin + lasts * 1000).toISOString(),
    ...rest,
  });
}

/** An account with its session. */
export async function newBuyer() {
  const account = { username: unique("buyer"), password: "a sentence, not a riddle" };
  const { value, cookie } = await post("/api/register", account);
  return { ...account, userId: value.user_id, cookie };
}

/** Buys over HTTP. */
export const buy = async (buyer, sale) => (await post("/api/buy", { voucher_id: sale.voucher_id }, buyer.cookie)).value;

/** The page of a sale. */
export const saleUrl = (sale) => `/sales/${sale.voucher_id}`;
