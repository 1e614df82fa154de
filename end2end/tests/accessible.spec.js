// Every page, light and dark, large and small, by axe.
import { expect, open, test } from "../support/test.js";
import { adminCookie, asAdmin, buy, newBuyer, newSale, saleUrl } from "../support/shop.js";
import { laneKey, redis } from "../support/services.js";
import { complaints } from "../support/axe.js";

/** Looks at each address in both themes; what is wrong in many places is told once. */
async function check(page, addresses) {
  const found = new Map();
  for (const address of addresses) {
    await open(page, address);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const complaint of await complaints(page)) {
        found.set(complaint, [...(found.get(complaint) ?? []), `${address} ${colorScheme}`]);
      }
    }
  }
  expect(Object.fromEntries(found)).toEqual({});
}

for (const [screen, viewport] of Object.entries({ desktop: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } })) {
  test(`axe finds nothing on the buyer's pages (${screen})`, async ({ visitor, quiet }) => {
    quiet.refusal("/sales/999999", 404);
    quiet.refusal("/problem", 503);
    const buyer = await newBuyer();
    const [scheduled, opened, soldOut, paused, ended] = await Promise.all([
      newSale({ opensIn: 1_800 }),
      newSale(),
      newSale({ stock: 1 }),
      newSale(),
      newSale(),
    ]);
    await asAdmin("/api/admin/pause_sale", { voucher_id: paused.voucher_id });
    await asAdmin("/api/admin/end_sale", { voucher_id: ended.voucher_id });
    const { order_id } = await buy(buyer, soldOut);
    const answers = ["sold_out", "not_started", "paused", "ended"].map((outcome) => `${saleUrl(opened)}?outcome=${outcome}`);
    const sales = [scheduled, opened, soldOut, paused, ended].map(saleUrl);
    const page = await visitor({ viewport, cookie: buyer.cookie });
    await check(page, ["/", ...sales, ...answers, `${saleUrl(opened)}?error=internal`, "/orders", `/orders/${order_id}`]);
    const stranger = await visitor({ viewport });
    await check(stranger, [saleUrl(opened), "/login", "/login?error=unauthenticated", "/register", "/sales/999999", "/problem?code=unavailable"]);
  });

  test(`axe finds nothing on the console (${screen})`, async ({ visitor }) => {
    await newSale();
    await redis("xadd", laneKey("orders"), "*", "v", "1", "order_id", `axe-${screen}`);
    const page = await visitor({ viewport, cookie: adminCookie() });
    await expect(async () => {
      await page.goto("/admin/dead-letters");
      await expect(page.getByRole("row").filter({ hasText: `axe-${screen}` })).toHaveCount(1, { timeout: 200 });
    }).toPass();
    await check(page, [
      "/admin",
      "/admin/sales",
      "/admin/sales?done=created",
      "/admin/sales?error=conflict",
      "/admin/queue",
      "/admin/pending",
      "/admin/dead-letters",
    ]);
  });
}
