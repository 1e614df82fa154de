// Takes the pictures: each page on a desktop and a phone, light and dark, and the main
// ones in both languages. SCREENSHOTS names the folder.
import path from "node:path";
import { fileURLToPath } from "node:url";

import { open, test } from "../support/test.js";
import { adminCookie, asAdmin, buy, newBuyer, newSale, saleUrl } from "../support/shop.js";
import { laneKey, redis } from "../support/services.js";

const FOLDER = process.env.SCREENSHOTS ?? fileURLToPath(new URL("../screenshots", import.meta.url));
const SCREENS = {
  desktop: { viewport: { width: 1200, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};
const LANGUAGES = { en: "en-GB", zh: "zh-CN" };

/** A shop in the middle of an ordinary day. */
async function furnish() {
  const voucher = (title, subtitle, yuan, value, rest) =>
    newSale({ title, subtitle, pay_cents: `${yuan}00`, value_cents: `${value}00`, ...rest });
  const buyers = await Promise.all(Array.from({ length: 24 }, newBuyer));
  const ended = await voucher("Museum night for one", "Entrance after six, audio guide included", 15, 60, { stock: 200 });
  await asAdmin("/api/admin/end_sale", { voucher_id: ended.voucher_id });
  const later = await voucher("Ferry to the islands", "There and back, any day in May", 40, 120, { opensIn: 50_000, stock: 800 });
  const soldOut = await voucher("Breakfast for two", "Soy milk, fried dough sticks, and a view", 9, 38, { stock: 6 });
  const paused = await voucher("Climbing hall, day ticket", "Shoes and chalk included", 29, 90, { stock: 150 });
  const opened = await voucher("100 yuan hotpot voucher", "Hotpot for two, any day of the week", 80, 100, { stock: 40 });
  const scheduled = await voucher("Cinema, best seats", "Row seven, any evening but Friday", 25, 80, { opensIn: 1_500, stock: 300 });
  for (const buyer of buyers) await buy(buyer, opened);
  for (const buyer of buyers.slice(0, 6)) await buy(buyer, soldOut);
  await asAdmin("/api/admin/pause_sale", { voucher_id: paused.voucher_id });
  const order = await buy(buyers[0], opened);
  await redis("xadd", laneKey("orders"), "*", "v", "1", "order_id", "twelve", "user_id", buyers[1].userId, "voucher_id", opened.voucher_id);
  return { buyer: buyers[0], fresh: buyers[20], ended, later, soldOut, paused, opened, scheduled, order: order.order_id };
}

let shop;
test.beforeAll(async () => {
  shop = await furnish();
});
test.describe.configure({ mode: "serial" });

for (const [screen, size] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [language, locale] of Object.entries(LANGUAGES)) {
      test(`pictures: ${screen}, ${colorScheme}, ${language}`, async ({ visitor }) => {
        const options = { ...size, colorScheme, locale };
        const take = async (page, name, address) => {
          await open(page, address);
          await page.screenshot({ path: path.join(FOLDER, `${name}-${screen}-${colorScheme}-${language}.png`), fullPage: true });
        };
        const buyer = await visitor({ ...options, cookie: shop.buyer.cookie });
        await take(buyer, "home", "/");
        await take(buyer, "sale-scheduled", saleUrl(shop.scheduled));
        await take(buyer, "sale-open", saleUrl(shop.opened));
        await take(buyer, "sale-sold-out", `${saleUrl(shop.soldOut)}?outcome=sold_out`);
        await take(buyer, "sale-paused", saleUrl(shop.paused));
        await take(buyer, "order", `/orders/${shop.order}`);
        await take(buyer, "orders", "/orders");
        const stranger = await visitor(options);
        await take(stranger, "login", `/login?next=${saleUrl(shop.opened)}`);
        await take(stranger, "sale-stranger", saleUrl(shop.scheduled));
        const admin = await visitor({ ...options, cookie: adminCookie() });
        for (const page of ["", "/sales", "/queue", "/pending", "/dead-letters"]) {
          await take(admin, `console${page.replace("/", "-") || "-overview"}`, `/admin${page}`);
        }
      });
    }
  }
}
