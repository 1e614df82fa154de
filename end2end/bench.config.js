// What pages cost a slow phone: `npm run bench`. Same server, same browser, one at a time.
import tests from "./playwright.config.js";

export default { ...tests, testDir: "bench", workers: 1, use: { ...tests.use, trace: "off" } };
