const html = document.documentElement;
try {
	const m = await import("SCRIPT");
	await m.default({ module_or_path: "WASM" });
	m.hydrate();
	for (const island of document.querySelectorAll("leptos-island")) {
		await m[island.dataset.component]?.(island);
	}
	html.dataset.hydrated = "";
} catch (error) {
	// The page says so; its links and forms work all the same.
	html.dataset.failed = "";
	throw error;
}
