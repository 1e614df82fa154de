// With JavaScript off everything a buyer needs is plain HTML.
import { expect, buyButton, orderId, test } from "../support/test.js";
import { buy, newBuyer, newSale, saleUrl, unique } from "../support/shop.js";

test.use({ javaScriptEnabled: false });

test("without JavaScript a stranger finds the sale, registers, buys, and sees the order", async ({ page }) => {
  const sale = await newSale({ title: unique("Plain") });
  await page.goto("/");
  await page.getByRole("link", { name: sale.title }).click();
  await expect(page.getByTestId("state")).toHaveText("Open");
  await expect(page.getByTestId("left")).toHaveText("10 left of 10");
  await expect(page.getByTestId("countdown")).toHaveText(/^(59:\d\d|1:00:00)$/);
  await buyButton(page).click();
  await expect(page).toHaveURL(`/login?next=${saleUrl(sale)}`);
  await page.getByRole("link", { name: "Create an account" }).click();
  const name = unique("plain");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill("a sentence, not a riddle");
  await page.getByRole("button", { name: "Create an account" }).click();
  await expect(page).toHaveURL(saleUrl(sale));
  await expect(page.getByText(name)).toBeVisible();

  await buyButton(page).click();
  const order = await orderId(page);
  await expect(async () => {
    await page.reload();
    await expect(page.getByTestId("state")).toHaveText("Confirmed", { timeout: 100 });
  }).toPass();
  await page.getByRole("link", { name: "To the sale" }).click();
  await buyButton(page).click();
  expect(await orderId(page)).toBe(order);
});

test("without JavaScript signing out and in again leads back", async ({ page }) => {
  const buyer = await newBuyer();
  await page.goto("/orders");
  await expect(page).toHaveURL("/login?next=/orders");
  await page.getByLabel("Name").fill(buyer.username);
  await page.getByLabel("Password").fill(buyer.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL("/orders");
  await expect(page.getByText("You have no orders yet.")).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("link", { name: "Sign in" })).toBeVisible();
});

test("without JavaScript a press before the opening, after the end, or on an empty sale is answered in words", async ({ visitor }) => {
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  const early = await newSale({ opensIn: 3_600 });
  await page.goto(saleUrl(early));
  await buyButton(page).click();
  await expect(page).toHaveURL(`${saleUrl(early)}?outcome=not_started`);
  await expect(page.getByTestId("answer")).toContainText("Not open yet.");
  await expect(page.getByTestId("left")).toHaveText("10 left of 10");

  const scarce = await newSale({ stock: 1 });
  await page.goto(saleUrl(scarce));
  await buy(await newBuyer(), scarce);
  await buyButton(page).click();
  await expect(page).toHaveURL(`${saleUrl(scarce)}?outcome=sold_out`);
  await expect(page.getByTestId("answer")).toContainText("Sold out.");

  const short = await newSale({ opensIn: -60, lasts: 63 });
  await page.goto(saleUrl(short));
  const state = page.getByTestId("state");
  await expect(state).toHaveText("Open");
  // The page stands still; what was open when it was drawn is pressed after the end.
  await expect.poll(() => Date.now(), { timeout: 10_000 }).toBeGreaterThan(short.end_ms + 100);
  await buyButton(page).click();
  await expect(page).toHaveURL(`${saleUrl(short)}?outcome=ended`);
  await expect(page.getByTestId("answer")).toContainText("This sale has ended.");
  await expect(state).toHaveText("Ended");
  await expect(buyButton(page)).toBeDisabled();
});
