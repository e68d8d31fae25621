// Every mistake with its object, key and remedy.

import { ask } from "/ui/api.js";
import { count, make, name, search, table, time } from "/ui/dom.js";

const KINDS = { error: "bad", warning: "warn", notice: "quiet" };

export function open(place, query, refresh) {
  let words = query.get("search") ?? "";
  let namespace = query.get("namespace") ?? "";
  const number = make("p", { class: "quiet", id: "found", role: "status" });
  const body = make("div", {});
  const choice = make("select", { name: "namespace", change: (event) => {
    namespace = event.target.value;
    refresh();
  } });
  const view = {
    async refresh() {
      const all = await ask("problems", { search: words, namespace, limit: 500 });
      const text = all.found > all.problems.length
        ? `the first ${all.problems.length} of ${count(all.found)}: search for less` : `${count(all.found)} of ${count(all.total)} problems`;
      if (number.textContent !== text) number.textContent = text;
      const options = Object.entries(all.namespaces).map(([key, times]) => make("option", { value: key, selected: key === namespace }, `${key || "none"} (${times})`));
      choice.replaceChildren(make("option", { value: "" }, "All"), ...options);
      const rows = all.problems.map((one) => [
        make("span", { class: KINDS[one.severity] }, one.severity),
        name(`${one.kind} ${one.namespace ? `${one.namespace}/` : ""}${one.name}`),
        name(one.key ?? "–"),
        make("span", { class: "name-of" }, one.message),
        time(one.since),
      ]);
      body.replaceChildren(rows.length ? table("Problems", ["Severity", "Object", "Key", "What is wrong, and the remedy", "Since"], rows) : make("p", { class: "good" }, "None."));
    },
  };
  place.append(
    make("form", { role: "search", submit: (event) => event.preventDefault() },
      search("Object, key or text", words, (text) => {
        words = text;
        refresh();
      }),
      make("label", {}, "Namespace", choice)),
    number, body,
  );
  return view;
}
