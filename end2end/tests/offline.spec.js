// A network that goes away after the press.
import { expect, open, buyButton, orderId, test } from "../support/test.js";
import { newBuyer, newSale, saleUrl } from "../support/shop.js";

test("a press without a network is kept, said, and becomes one order when the network is back", async ({ visitor, quiet }) => {
  quiet.offline();
  const sale = await newSale();
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  await open(page, saleUrl(sale));
  await page.context().setOffline(true);
  await buyButton(page).click();
  await expect(page.getByTestId("answer")).toHaveAttribute("data-outcome", "offline");
  await expect(page.getByTestId("answer")).toContainText("Your press is kept");
  await page.context().setOffline(false);
  const order = await orderId(page);
  await expect(page.getByTestId("state")).toHaveText("Confirmed");
  await page.goto("/orders");
  await expect(page.locator("main").getByRole("listitem")).toHaveCount(1);
  await expect(page.locator("main").getByRole("listitem")).toContainText(order);
});

test("a press whose answer is lost leads to the order that it made", async ({ visitor, quiet }) => {
  quiet.offline();
  const sale = await newSale({ stock: 2 });
  const page = await visitor({ cookie: (await newBuyer()).cookie });
  await open(page, saleUrl(sale));
  // The request arrives and is decided; its answer does not.
  let lost;
  await page.route(
    "**/api/buy",
    async (route) => {
      lost = await (await route.fetch()).json();
      await route.abort("connectionreset");
    },
    { times: 1 },
  );
  await buyButton(page).click();
  const order = await orderId(page);
  expect(lost.outcome).toBe("admitted");
  expect(order).toBe(lost.order_id);
});
