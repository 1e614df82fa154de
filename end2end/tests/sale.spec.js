// A whole sale: created, waited for, bought, confirmed.
import { expect, open, buyButton, orderId, test } from "../support/test.js";
import { asAdmin, newBuyer, newSale, saleUrl, unique } from "../support/shop.js";

/** A moment as a `datetime-local` field writes it, in a zone: without seconds if there are none. */
const localTime = (ms, timeZone) =>
  new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(ms).replace(" ", "T").replace(/:00$/, "");

test("an admin creates a sale, a buyer waits through the countdown, buys, and sees the order confirmed", async ({ page, visitor }) => {
  const title = unique("Hotpot");
  await page.goto("/login?next=/admin/sales");
  await page.getByLabel("Name").fill(process.env.E2E_ADMIN);
  await page.getByLabel("Password").fill(process.env.E2E_ADMIN_PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL("/admin/sales");

  // The buyer is there before the sale is, so that no second of the countdown is lost.
  const buyer = await visitor({ cookie: (await newBuyer()).cookie });
  const begin = Math.ceil(Date.now() / 1000) * 1000 + 8_000;
  await page.getByLabel("Title", { exact: true }).fill(title);
  await page.getByLabel("Subtitle").fill("For two");
  await page.getByLabel("Rules").fill("One per buyer.");
  await page.getByLabel("Price, in cents", { exact: true }).fill("8000");
  await page.getByLabel("Face value, in cents").fill("10000");
  await page.getByLabel("Stock", { exact: true }).fill("5");
  await page.getByLabel("Begin").fill(localTime(begin, "Asia/Kolkata"));
  await page.getByLabel("End", { exact: true }).fill(localTime(begin + 3_600_000, "Asia/Kolkata"));
  await page.getByLabel("Time zone of both").fill("Asia/Kolkata");
  await page.getByTestId("create").click();

  await expect(page).toHaveURL(/done=created/);
  await expect(page.getByText("The sale was created.")).toBeVisible();
  const row = page.getByRole("row").filter({ hasText: title });
  await expect(row.getByTestId("loaded")).toHaveText("loaded");
  const address = await row.getByRole("link", { name: title }).getAttribute("href");

  await open(buyer, address);
  await expect(buyer.getByRole("heading", { name: title })).toBeVisible();
  await expect(buyer.getByTestId("state")).toHaveText("Opens soon");
  await expect(buyer.getByTestId("countdown")).toHaveText(/^00:0\d$/);
  await expect(buyer.getByTestId("left")).toHaveText("5 left of 5");
  await expect(buyButton(buyer)).toBeDisabled();

  // Nobody reloads: the button opens by itself.
  await expect(buyButton(buyer)).toBeEnabled();
  await expect(buyButton(buyer)).toHaveText("Buy now");
  expect(Date.now()).toBeGreaterThanOrEqual(begin - 50);
  await buyButton(buyer).click();
  const order = await orderId(buyer);
  await expect(buyer.getByTestId("state")).toHaveText("Confirmed");

  await test.step("a reload, another press and a second tab show the same order", async () => {
    await buyer.reload();
    expect(await orderId(buyer)).toBe(order);
    await expect(buyer.getByTestId("state")).toHaveText("Confirmed");
    await open(buyer, address);
    await buyButton(buyer).click();
    expect(await orderId(buyer)).toBe(order);
    const tab = await buyer.context().newPage();
    await open(tab, address);
    await buyButton(tab).click();
    expect(await orderId(tab)).toBe(order);
    await tab.goto("/orders");
    await expect(tab.getByRole("listitem").filter({ hasText: title })).toHaveCount(1);
  });
});

test("two presses in two tabs at the same moment are one order", async ({ visitor }) => {
  const sale = await newSale();
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  const tab = await page.context().newPage();
  await open(page, saleUrl(sale));
  await open(tab, saleUrl(sale));
  await Promise.all([buyButton(page).dblclick({ noWaitAfter: true }), buyButton(tab).click({ noWaitAfter: true })]);
  expect(await orderId(page)).toBe(await orderId(tab));
});

test("what one buyer takes is seen by another, who reads that it is sold out", async ({ visitor }) => {
  const sale = await newSale({ stock: 1 });
  const watcher = await visitor({ cookie: (await newBuyer()).cookie });
  await open(watcher, saleUrl(sale));
  await expect(watcher.getByTestId("left")).toHaveText("1 left of 1");

  const first = await visitor({ cookie: (await newBuyer()).cookie });
  await open(first, saleUrl(sale));
  await buyButton(first).click();
  const order = await orderId(first);

  await expect(watcher.getByTestId("state")).toHaveText("Sold out");
  await expect(watcher.getByTestId("left")).toHaveText("0 left of 1");
  await buyButton(watcher).click();
  await expect(watcher.getByTestId("answer")).toHaveAttribute("data-outcome", "sold_out");
  await expect(watcher.getByTestId("answer")).toContainText("Sold out.");
  await expect(watcher.getByTestId("answer")).toBeFocused();

  // Sold out or not, whoever has an order gets it.
  await open(first, saleUrl(sale));
  await buyButton(first).click();
  expect(await orderId(first)).toBe(order);
});

test("a stranger who presses the button signs in, comes back to the sale, and buys", async ({ page, quiet }) => {
  quiet.refusal("/api/buy", 401);
  quiet.refusal("/login", 401);
  const sale = await newSale();
  const buyer = await newBuyer();
  await open(page, saleUrl(sale));
  await expect(page.getByText("Sign in before it opens")).toBeVisible();
  await buyButton(page).click();
  await expect(page).toHaveURL(`/login?next=${saleUrl(sale)}`);
  await page.getByLabel("Name").fill(buyer.username);
  await page.getByLabel("Password").fill("not this one");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText("The name or the password is not right.")).toBeVisible();
  await page.getByLabel("Password").fill(buyer.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL(saleUrl(sale));
  await buyButton(page).click();
  await orderId(page);
  await expect(page.getByTestId("state")).toHaveText("Confirmed");
});

test("the page closes by itself at the end, and refuses nobody before it", async ({ visitor }) => {
  const sale = await newSale({ lasts: 8 });
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  await open(page, saleUrl(sale));
  await expect(buyButton(page)).toBeEnabled();
  await expect(page.getByTestId("state")).toHaveText("Ended");
  await expect(buyButton(page)).toBeDisabled();
  await expect(page.getByTestId("countdown")).toHaveText("00:00");
});

test("somebody else's order is as unknown as one that does not exist", async ({ visitor, quiet }) => {
  quiet.refusal("/orders/", 404);
  const sale = await newSale();
  const owner = await visitor({ cookie: (await newBuyer()).cookie });
  await open(owner, saleUrl(sale));
  await buyButton(owner).click();
  const order = await orderId(owner);

  const other = await visitor({ cookie: (await newBuyer()).cookie });
  const seen = [];
  for (const id of [order, String(BigInt(order) + 99_999n), "0", "-5", "nonsense"]) {
    const answer = await other.goto(`/orders/${id}`);
    expect(answer.status()).toBe(404);
    seen.push((await other.locator("main").innerText()).replace(/^Request .*$/m, ""));
  }
  expect(new Set(seen)).toEqual(new Set([seen[0]]));
  expect(seen[0]).toContain("Nothing here");
});

test("a sale in the list opens by itself", async ({ visitor }) => {
  const sale = await newSale({ opensIn: 5, title: unique("Listed") });
  const page = await visitor();
  await open(page, "/");
  const badge = page.getByRole("listitem").filter({ hasText: sale.title }).locator(".badge");
  await expect(badge).toHaveText("Opens soon");
  await expect(badge).toHaveText("Open");
  expect(Date.now()).toBeGreaterThanOrEqual(sale.begin_ms - 50);
});

test("a sale that an operator ends before it opens stops counting on every open page", async ({ visitor }) => {
  const sale = await newSale({ opensIn: 60 });
  const page = await visitor();
  await open(page, saleUrl(sale));
  await expect(page.locator(".countdown")).toHaveAttribute("data-phase", "before");
  await asAdmin("/api/admin/end_sale", { voucher_id: sale.voucher_id });
  // A page looks every 15 s before the opening.
  await expect(page.getByTestId("state")).toHaveText("Ended", { timeout: 20_000 });
  await expect(page.locator(".countdown")).toHaveAttribute("data-phase", "ended");
  await expect(page.getByTestId("countdown")).toHaveText("00:00");
  await expect(page).toHaveTitle(new RegExp(`^${sale.title}`));
});
