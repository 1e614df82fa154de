// A device whose clock is wrong: the page goes by the server's.
import { expect, open, buyButton, test } from "../support/test.js";
import { newBuyer, newSale, saleUrl } from "../support/shop.js";

/** Moves every clock of the page that tells the time of day. */
function shiftDate(ms) {
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...args) {
      if (args.length) super(...args);
      else super(Real.now() + ms);
    }
    static now() {
      return Real.now() + ms;
    }
  };
}

/** Server's clock minus the page's monotonic one, by the quickest of several trips. */
async function serverOffset(voucherId) {
  let best = { trip: Infinity };
  for (let i = 0; i < 8; i++) {
    const sent = performance.now();
    const { now_ms } = await (await fetch(`/api/clock?voucher_id=${voucherId}`)).json();
    const trip = performance.now() - sent;
    if (trip < best.trip) best = { trip, offset: now_ms - (sent + trip / 2) };
  }
  return best.offset;
}

const HOUR = 3_600_000;
for (const [name, shift] of [
  ["an hour fast", HOUR],
  ["a day slow", -24 * HOUR],
]) {
  test(`with a device clock ${name} the countdown and the opening are the server's`, async ({ visitor }) => {
    const sale = await newSale({ opensIn: 12 });
    const page = await visitor({ cookie: (await newBuyer()).cookie });
    await page.addInitScript(shiftDate, shift);
    await open(page, saleUrl(sale));
    expect(Math.abs((await page.evaluate(() => Date.now())) - Date.now() - shift)).toBeLessThan(60_000);
    await expect(buyButton(page)).toBeDisabled();

    const opened = page.evaluate(
      () =>
        new Promise((resolve) => {
          const button = document.querySelector("[data-testid=buy]");
          const look = () => !button.disabled && resolve(performance.now());
          new MutationObserver(look).observe(button, { attributes: true });
          look();
        }),
    );
    const offset = await page.evaluate(serverOffset, sale.voucher_id);
    const { shown, now } = await page.evaluate(() => ({
      shown: document.querySelector("[data-testid=countdown]").textContent,
      now: performance.now(),
    }));
    const [minutes, seconds] = shown.split(":").map(Number);
    const left = (sale.begin_ms - (now + offset)) / 1000;
    expect(Math.abs(minutes * 60 + seconds - left), `shown ${shown}, left ${left} s`).toBeLessThanOrEqual(1.1);

    const late = (await opened) + offset - sale.begin_ms;
    expect(late, "milliseconds from the opening to the open button").toBeGreaterThan(-50);
    expect(late, "milliseconds from the opening to the open button").toBeLessThan(1_000);
    await buyButton(page).click();
    await expect(page.getByTestId("state")).toHaveText("Confirmed");
  });
}
