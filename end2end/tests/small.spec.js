// What a buyer's phone has to load, as it comes over the wire.
import { expect, open, test } from "../support/test.js";
import { buy, newBuyer, newSale, saleUrl } from "../support/shop.js";

const BUDGET = 150_000;
const HTML = 16_000;

test("a buyer's pages stay within their budget, compressed, and are kept for ever by their hash", async ({ visitor }) => {
  const buyer = await newBuyer();
  const [scheduled, bought] = await Promise.all([newSale({ opensIn: 1_800 }), newSale()]);
  const { order_id } = await buy(buyer, bought);
  for (const address of [saleUrl(scheduled), `/orders/${order_id}`, "/"]) {
    const page = await visitor({ cookie: buyer.cookie });
    const network = await page.context().newCDPSession(page);
    await network.send("Network.enable");
    let total = 0;
    const kinds = new Map();
    network.on("Network.responseReceived", ({ requestId, response, type }) => kinds.set(requestId, { response, type }));
    network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      const { response, type } = kinds.get(requestId) ?? {};
      if (!response || response.url.includes("/api/")) return;
      total += encodedDataLength;
      if (type === "Document") expect(encodedDataLength, `HTML of ${address}`).toBeLessThanOrEqual(HTML);
      if (response.url.includes("/pkg/")) {
        expect(response.headers["content-encoding"], response.url).toBe("br");
        expect(response.headers["cache-control"], response.url).toContain("immutable");
      }
    });
    await open(page, address);
    await page.waitForLoadState("load");
    expect(total, `bytes of ${address}`).toBeGreaterThan(5_000);
    expect(total, `bytes of ${address}`).toBeLessThanOrEqual(BUDGET);
  }
});

test("a link to a sale brings a preview, an icon and a title, and the tab counts down", async ({ page }) => {
  const sale = await newSale({ opensIn: 1_800 });
  await open(page, saleUrl(sale));
  const meta = (property) => page.locator(`meta[property="og:${property}"]`).getAttribute("content");
  expect(await meta("title")).toContain(sale.title);
  expect(await meta("description")).toContain("¥80");
  expect(await meta("type")).toBe("product");
  expect(await page.locator('meta[property="product:price:amount"]').getAttribute("content")).toBe("80.00");
  expect(await page.locator('meta[property="product:price:currency"]').getAttribute("content")).toBe("CNY");
  await expect(page.locator('link[rel="icon"]')).toHaveAttribute("href", /^data:image\/svg/);
  await expect(page).toHaveTitle(new RegExp(`^(29:\\d\\d|30:00) · ${sale.title} · Seckill$`));
});
