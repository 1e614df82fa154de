// What the console says about the past: reconciliation, the audit log, and why a sale stands still.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { expect, open, test } from "../support/test.js";
import { adminCookie, asAdmin, get, newBuyer, newSale } from "../support/shop.js";
import { laneKey, redis } from "../support/services.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A sale whose counters were changed behind the shop's back, once the reconciler has closed it. */
async function drifted() {
  const sale = await newSale({ stock: 7 });
  await redis("hincrby", laneKey(`sale:${sale.voucher_id}`), "stock", "1");
  await expect
    .poll(async () => (await get(`/api/sale?voucher_id=${sale.voucher_id}`)).state, { timeout: 30_000 })
    .toBe("paused");
  return sale;
}

test("strangers are sent to sign in, and buyers are refused", async ({ page, visitor, quiet }) => {
  quiet.refusal("/admin", 403);
  const buyer = await visitor({ cookie: (await newBuyer()).cookie });
  for (const address of ["/admin/reports", "/admin/audit"]) {
    await page.goto(address);
    await expect(page).toHaveURL(`/login?next=${address}`);
    expect((await buyer.goto(address)).status()).toBe(403);
  }
});

test("a sale that drifted says why it stands still, leads to its reports, and goes on when it is resumed", async ({ admin }) => {
  const sale = await drifted();
  await open(admin, "/admin/sales");
  const row = admin.getByRole("row").filter({ hasText: sale.title });
  const why = row.getByTestId("why");
  await expect(why).toContainText("(drift)");
  await expect(why).toContainText("Look at the reconciliation, then resume.");

  await why.getByRole("link", { name: "Reconciliation" }).click();
  await expect(admin).toHaveURL(`/admin/reports?voucher_id=${sale.voucher_id}`);
  await expect(admin.getByLabel("Voucher")).toHaveValue(sale.voucher_id);
  const closed = admin.getByRole("row").filter({ hasText: "Closed" });
  await expect(closed.getByTestId("verdict")).toHaveText("drift");
  await expect(closed.getByRole("cell", { name: "8", exact: true })).toHaveCount(1);

  await open(admin, "/admin/sales");
  await row.getByText("Manage").click();
  await row.getByRole("button", { name: "Resume" }).click();
  await expect(admin.getByText("The sale goes on.")).toBeVisible();
  await expect(why).toHaveCount(0);
});

test("reports are filtered by the voucher in the address, and an empty list says why", async ({ admin }) => {
  const sale = await drifted();
  await open(admin, "/admin/reports");
  await admin.getByLabel("Voucher").fill("999999999");
  await admin.getByRole("button", { name: "Filter" }).click();
  await expect(admin).toHaveURL("/admin/reports?voucher_id=999999999");
  await expect(admin.getByText("No report of this voucher.")).toBeVisible();
  await admin.getByRole("link", { name: "All" }).click();
  await expect(admin).toHaveURL("/admin/reports");
  await admin.getByRole("row").getByRole("link", { name: sale.voucher_id, exact: true }).first().click();
  await expect(admin).toHaveURL(`/admin/reports?voucher_id=${sale.voucher_id}`);
});

test("the audit log tells who did what, a page at a time", async ({ admin }) => {
  const sale = await newSale({ stock: 12 });
  const id = { voucher_id: sale.voucher_id };
  await asAdmin("/api/admin/pause_sale", id);
  await open(admin, "/admin/sales");
  await expect(admin.getByRole("row").filter({ hasText: sale.title }).getByTestId("why")).toContainText("Paused by admin");
  // More than a page holds.
  for (let i = 0; i < 26; i += 1) {
    await asAdmin("/api/admin/resume_sale", id);
    await asAdmin("/api/admin/pause_sale", id);
  }
  await admin.getByRole("link", { name: "Audit log" }).click();
  const mine = admin.getByRole("row").filter({ has: admin.getByRole("link", { name: sale.voucher_id, exact: true }) });
  await expect(mine.first().getByRole("cell").first()).toHaveText("admin");
  await expect(mine.filter({ hasText: "Paused" }).first()).toBeVisible();
  await admin.getByRole("link", { name: "Next page" }).click();
  await expect(mine.filter({ hasText: "Created" }).getByRole("cell").last()).toHaveText("12 units");
  await admin.getByRole("link", { name: "First page" }).click();
  await expect(admin).toHaveURL("/admin/audit");
});

for (const viewport of [
  { width: 1280, height: 800 },
  { width: 320, height: 568 },
]) {
  test(`axe finds nothing and nothing scrolls sideways, ${viewport.width} wide`, async ({ visitor }) => {
    await drifted();
    const page = await visitor({ viewport, cookie: adminCookie() });
    for (const address of ["/admin/reports", "/admin/reports?voucher_id=999999999", "/admin/audit", "/admin/sales"]) {
      await open(page, address);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, address).toBe(0);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0].target}`), `${address} ${colorScheme}`).toEqual([]);
      }
    }
  });
}
