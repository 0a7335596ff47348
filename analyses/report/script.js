// Filters whose state is the URL's hash (#claims?result=undecided&text=rank), and entries that open when they are linked to.
"use strict";
(() => {
  const panels = [...document.querySelectorAll("[data-filter]")];

  /** The section that the hash filters, and how; no section for a plain anchor. */
  function state() {
    const [, id, query] = /^#([\w-]+)\?(.*)$/.exec(location.hash) ?? [];
    return { id, wanted: new URLSearchParams(query) };
  }

  function matches(item, form, wanted) {
    for (const { name } of form.querySelectorAll("select")) {
      const value = wanted.get(name);
      if (value && item.dataset[name] !== value) return false;
    }
    const text = item.textContent.toLowerCase();
    return (wanted.get("text") ?? "").toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  function show(panel, wanted) {
    const form = panel.querySelector("form");
    for (const control of form.querySelectorAll("[name]")) {
      const value = wanted.get(control.name) ?? "";
      if (control.value !== value) control.value = value;
    }
    let shown = 0;
    for (const item of panel.querySelectorAll("[data-item]")) {
      item.hidden = !matches(item, form, wanted);
      shown += !item.hidden;
    }
    panel.querySelector("[data-shown]").textContent = shown;
  }

  /** Bring the page to what the URL says. */
  function follow() {
    const { id, wanted } = state();
    for (const panel of panels) show(panel, panel.id === id ? wanted : new URLSearchParams());
    const target = document.getElementById(id ?? decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
    target?.scrollIntoView({ behavior: "instant" });
  }

  function write(panel) {
    const wanted = new URLSearchParams();
    for (const { name, value } of panel.querySelectorAll("form [name]")) if (value) wanted.set(name, value);
    history.replaceState(null, "", `#${panel.id}${wanted.size ? `?${wanted}` : ""}`);
    show(panel, wanted);
  }

  for (const panel of panels) {
    const form = panel.querySelector("form");
    form.hidden = false;
    form.addEventListener("input", () => write(panel));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      for (const control of form.querySelectorAll("[name]")) control.value = "";
      write(panel);
    });
  }
  addEventListener("hashchange", follow);
  if (location.hash) follow();
})();
