const m = await import("SCRIPT");
await m.default({ module_or_path: "WASM" });
m.hydrate();
for (const island of document.querySelectorAll("leptos-island")) {
	await m[island.dataset.component]?.(island);
}
document.documentElement.dataset.hydrated = "";
