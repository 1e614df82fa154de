// Small screens: nothing to scroll sideways, the button under the thumb.
import { expect, open, buyButton, orderId, test } from "../support/test.js";
import { adminCookie, newBuyer, newSale, saleUrl } from "../support/shop.js";

/** How far the page is wider than the screen. */
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

for (const viewport of [
  { width: 390, height: 844 },
  { width: 320, height: 568 },
]) {
  const phone = { viewport, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

  test(`on a screen of ${viewport.width} by ${viewport.height} the button is in reach and buys`, async ({ visitor }) => {
    const long = "A voucher with a very long title that has to wrap, and an unbreakablewordthatisverylongindeed";
    const sale = await newSale({ title: long, opensIn: 3 });
    const page = await visitor({ ...phone, cookie: (await newBuyer()).cookie });
    await open(page, saleUrl(sale));
    for (const place of [0, 99_999]) {
      await page.evaluate((y) => scrollTo(0, y), place);
      await expect(buyButton(page)).toBeInViewport({ ratio: 1 });
    }
    const { height, width } = await buyButton(page).boundingBox();
    expect(height).toBeGreaterThanOrEqual(44);
    expect(width).toBeGreaterThanOrEqual(44);
    expect(await overflow(page)).toBe(0);
    await expect(buyButton(page)).toBeEnabled();
    await buyButton(page).tap();
    await orderId(page);
    await expect(page.getByTestId("state")).toHaveText("Confirmed");
    expect(await overflow(page)).toBe(0);
  });

  test(`on a screen of ${viewport.width} by ${viewport.height} no page scrolls sideways`, async ({ visitor }) => {
    await newSale({ opensIn: 3_600, stock: 10_000_000, pay_cents: "999999999", value_cents: "9999999999" });
    const page = await visitor({ ...phone, cookie: adminCookie() });
    for (const address of ["/", "/orders", "/admin", "/admin/sales", "/admin/queue", "/admin/pending", "/admin/dead-letters"]) {
      await open(page, address);
      expect(await overflow(page), address).toBe(0);
    }
    const stranger = await visitor(phone);
    for (const address of ["/login", "/register", "/"]) {
      await open(stranger, address);
      expect(await overflow(stranger), address).toBe(0);
    }
  });
}
