// The operators' pages: who may see them, figures that move, forms that act.
import { expect, open, test } from "../support/test.js";
import { adminCookie, buy, get, newBuyer, newSale, saleUrl, unique } from "../support/shop.js";
import { holdRows, laneKey, redis, sql } from "../support/services.js";

const PAGES = ["/admin", "/admin/sales", "/admin/queue", "/admin/pending", "/admin/dead-letters"];

test("strangers are sent to sign in, and buyers are refused", async ({ page, visitor, quiet }) => {
  for (const address of PAGES) {
    await page.goto(address);
    await expect(page).toHaveURL(`/login?next=${address}`);
  }
  quiet.refusal("/admin", 403);
  const buyer = await visitor({ cookie: (await newBuyer()).cookie });
  for (const address of PAGES) {
    const answer = await buyer.goto(address);
    expect(answer.status()).toBe(403);
    await expect(buyer.getByRole("heading", { name: "Not with this account" })).toBeVisible();
    await expect(buyer.getByRole("link", { name: "Console" })).toHaveCount(0);
  }
});

test("the overview's figures move by themselves while a buyer buys, and stay balanced", async ({ admin }) => {
  const sale = await newSale({ stock: 3 });
  await open(admin, "/admin");
  const row = admin.getByRole("row").filter({ has: admin.getByRole("link", { name: sale.title }) });
  // Voucher (a row's head), state, total, left, in flight, dead, confirmed, conservation.
  const cells = row.getByRole("cell");
  await expect(cells).toHaveText(["Open", "3", "3", "0", "0", "0", "balanced"]);
  await buy(await newBuyer(), sale);
  await expect(cells).toHaveText(["Open", "3", "2", "0", "0", "1", "balanced"]);
  await admin.getByRole("link", { name: sale.title }).click();
  await expect(admin).toHaveURL(saleUrl(sale));
  // From there it is one step back.
  await expect(admin.getByRole("link", { name: "Console" })).toBeVisible();
});

test("what waits for the database is seen on queue and pending by itself, and leaves by itself", async ({ admin, visitor }) => {
  const sale = await newSale();
  const buyer = await newBuyer();
  const queue = await visitor({ cookie: adminCookie() });
  await open(queue, "/admin/queue");
  await open(admin, "/admin/pending");
  await expect(queue.getByRole("table").first().getByRole("row")).toHaveCount(2);
  const worker = queue.getByRole("row").filter({ hasText: "alive" }).first();
  await expect(worker).toBeVisible();
  const inFlight = queue.locator(".tile").filter({ hasText: "In flight" }).locator("dd");

  const release = await holdRows(`select 1 from voucher where voucher_id = ${sale.voucher_id}`);
  let entry;
  try {
    const { order_id } = await buy(buyer, sale);
    entry = admin.getByRole("row").filter({ hasText: order_id });
    await expect(entry.getByRole("cell", { name: sale.voucher_id, exact: true })).not.toHaveCount(0);
    await expect(entry.getByRole("cell", { name: buyer.userId, exact: true })).not.toHaveCount(0);
    await expect(inFlight).not.toHaveText("0");
  } finally {
    await release();
  }
  await expect(entry).toHaveCount(0);
});

test("the refresh can be held still, and goes on afterwards", async ({ admin }) => {
  await open(admin, "/admin/queue");
  const time = admin.locator(".refresh time");
  const before = await time.textContent();
  await expect(time).not.toHaveText(before);
  const hold = admin.getByTestId("pause-refresh");
  await hold.click();
  await expect(hold).toHaveAttribute("aria-pressed", "true");
  await expect(hold).toHaveText("Refresh again");
  await hold.click();
  const held = await time.textContent();
  await expect(time).not.toHaveText(held);
});

test("a sale is paused, resumed, given more stock, and ended, the last only after asking", async ({ admin }) => {
  const sale = await newSale({ stock: 2 });
  const row = admin.getByRole("row").filter({ hasText: sale.title });
  const state = async () => (await get(`/api/sale?voucher_id=${sale.voucher_id}`)).state;
  const manage = () => row.getByText("Manage").click();
  await open(admin, "/admin/sales");

  await manage();
  await row.getByRole("button", { name: "Pause" }).click();
  await expect(admin.getByText("The sale is paused.")).toBeVisible();
  expect(await state()).toBe("paused");

  await manage();
  await row.getByRole("button", { name: "Resume" }).click();
  await expect(admin.getByText("The sale goes on.")).toBeVisible();
  expect(await state()).toBe("open");

  await manage();
  await row.getByLabel("How many").fill("40");
  await row.getByRole("button", { name: "Add stock" }).click();
  await expect(admin.getByText("Stock was added.")).toBeVisible();
  await expect(row.getByRole("cell", { name: "42", exact: true })).toHaveCount(2);

  await manage();
  const end = row.getByRole("button", { name: "End for good" });
  await expect(end).toBeHidden();
  expect(await state()).toBe("open");
  await row.getByText("End this sale…").click();
  await expect(row.getByText("Cannot be undone.")).toBeVisible();
  await end.click();
  await expect(admin.getByText("The sale has ended.")).toBeVisible();
  expect(await state()).toBe("ended");
});

test("a form that is refused says why and keeps what was typed", async ({ admin }) => {
  const title = unique("Refused");
  await open(admin, "/admin/sales");
  await admin.getByLabel("Title", { exact: true }).fill(title);
  await admin.getByLabel("Price, in cents", { exact: true }).fill("8000");
  await admin.getByLabel("Face value, in cents").fill("10000");
  await admin.getByLabel("Stock", { exact: true }).fill("5");
  await admin.getByLabel("Begin").fill("2031-05-01T10:00:30");
  await admin.getByLabel("End", { exact: true }).fill("2031-05-01T09:00:30");
  await admin.getByTestId("create").click();
  await expect(admin.getByText("The sale was not created.")).toBeVisible();
  await expect(admin.getByLabel("Title", { exact: true })).toHaveValue(title);
  await expect(admin.getByLabel("Begin")).toHaveValue(/^2031-05-01T10:00:30/);
  await expect(admin.getByRole("row").filter({ hasText: title })).toHaveCount(0);
});

test("a broken entry becomes a dead letter with its reason, and is discarded only after asking", async ({ admin }) => {
  const mark = unique("broken");
  await redis("xadd", laneKey("orders"), "*", "v", "1", "order_id", mark, "user_id", "x");
  const row = admin.getByRole("row").filter({ hasText: mark });
  await expect(async () => {
    await open(admin, "/admin/dead-letters");
    await expect(row).toHaveCount(1, { timeout: 200 });
  }).toPass();
  await expect(row).toContainText("order_id is missing or malformed");

  await row.getByRole("button", { name: "Replay" }).click();
  await expect(admin.getByText("Nothing was changed.")).toBeVisible();
  const discard = row.getByRole("button", { name: "Discard" });
  await expect(discard).toBeHidden();
  await row.getByText("Discard…").click();
  await discard.click();
  await expect(admin.getByText("The order was ended as failed.")).toBeVisible();
  await expect(row).toHaveCount(0);
});

test("a dead letter is queued to its buyer until an operator replays it, and is confirmed then", async ({ admin, visitor }) => {
  const sale = await newSale();
  const buyer = await newBuyer();
  // Without the account's row no order of it can be written, whatever the tries.
  const account = await sql(`delete from user_account where user_id = ${buyer.userId} returning username_key, password_hash`);
  const [key, hash] = account.split("|");
  const page = await visitor({ cookie: buyer.cookie });
  await open(page, saleUrl(sale));
  await page.getByTestId("buy").click();
  await page.waitForURL(/\/orders\/\d+$/);
  const order = page.url().split("/").pop();

  const row = admin.getByRole("row").filter({ hasText: order });
  await expect(async () => {
    await open(admin, "/admin/dead-letters");
    await expect(row).toHaveCount(1, { timeout: 200 });
  }).toPass({ timeout: 30_000 });
  await expect(page.getByTestId("state")).toHaveText("Accepted, queued");

  await sql(`insert into user_account (user_id, username, username_key, password_hash)
    overriding system value values (${buyer.userId}, '${buyer.username}', '${key}', '${hash}')`);
  await row.getByRole("button", { name: "Replay" }).click();
  await expect(admin.getByText("The order is in the queue again.")).toBeVisible();
  await expect(page.getByTestId("state")).toHaveText("Confirmed", { timeout: 30_000 });
});
