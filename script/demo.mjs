// Creates the demo sale of script/run, as an admin would over HTTP, and prints the
// address of its page: node script/demo.mjs <origin> <name> <opens in seconds>
// The password comes in SECKILL_ADMIN_PASSWORD: arguments are visible to everybody.
const [origin, username, delay] = process.argv.slice(2);

async function post(path, fields, cookie) {
  const answer = await fetch(origin + path, {
    method: "POST",
    headers: { accept: "application/json", ...(cookie && { cookie }) },
    body: new URLSearchParams(fields),
  });
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${body}`);
  return { cookies: answer.headers.getSetCookie(), value: JSON.parse(body) };
}

const password = process.env.SECKILL_ADMIN_PASSWORD;
const { cookies } = await post("/api/login", { username, password });
const cookie = cookies.map((one) => one.split(";")[0]).join("; ");

const begin = new Date(Date.now() + Number(delay) * 1000);
const end = new Date(begin.getTime() + 60 * 60 * 1000);
const { value: sale } = await post(
  "/api/admin/create_voucher",
  {
    title: "Demo: 100 yuan voucher",
    subtitle: "Hotpot for two, any day of the week",
    rules: "One per buyer. Valid for 30 days.",
    pay_cents: "8000",
    value_cents: "10000",
    stock: "100",
    begin: begin.toISOString(),
    end: end.toISOString(),
  },
  cookie,
);
console.log(`${origin}/sales/${sale.voucher_id}`);
