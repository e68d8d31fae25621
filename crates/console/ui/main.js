// Which view is shown, and when it is shown anew.

import { follow } from "/ui/api.js";
import { make } from "/ui/dom.js";
import * as overview from "/ui/overview.js";
import * as routes from "/ui/routes.js";
import * as problems from "/ui/problems.js";
import * as certificates from "/ui/certificates.js";
import * as changes from "/ui/changes.js";
import * as explain from "/ui/explain.js";
import * as limits from "/ui/limits.js";

const VIEWS = { overview, routes, problems, certificates, changes, explain, limits };
const place = document.getElementById("view");
const state = document.getElementById("state");
let shown = null;
let busy = false;
let again = false;

function asked() {
  const hash = location.hash.slice(1);
  const end = hash.includes("?") ? hash.indexOf("?") : hash.length;
  const view = hash.slice(0, end);
  return [Object.hasOwn(VIEWS, view) ? view : "overview", new URLSearchParams(hash.slice(end + 1))];
}

async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  try {
    const current = shown;
    await current?.refresh?.();
    document.getElementById("failure")?.remove();
  } catch (error) {
    fail(error);
  }
  busy = false;
  if (again) {
    again = false;
    refresh();
  }
}

function fail(error) {
  document.getElementById("failure")?.remove();
  place.prepend(make("p", { id: "failure", class: "bad", role: "alert" }, error.message));
}

function show() {
  const [view, query] = asked();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const heading = make("h1", {}, document.querySelector(`nav a[href="#${view}"]`).textContent);
  document.title = `${heading.textContent} – Fairway`;
  place.replaceChildren(heading);
  shown = VIEWS[view].open(place, query, refresh);
  refresh();
}

window.addEventListener("hashchange", () => {
  show();
  place.focus({ preventScroll: true });
});
show();
follow(() => {
  if (!document.hidden) refresh();
}, (text) => {
  if (state.textContent !== text) state.textContent = text;
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
