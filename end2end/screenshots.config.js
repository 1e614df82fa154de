// Pictures of the pages, for people: `npm run screenshots`. Same server, same browser.
import tests from "./playwright.config.js";

export default { ...tests, testDir: "pictures", timeout: 120_000, use: { ...tests.use, trace: "off" } };
