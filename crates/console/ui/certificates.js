// Certificates in the order in which they expire.

import { ask } from "/ui/api.js";
import { count, make, name, search, table, time } from "/ui/dom.js";

const names = (list, more = 0) => (list.length
  ? [...list.map((text) => make("div", {}, name(text))), ...(more ? [make("div", { class: "quiet" }, `and ${count(more)} more`)] : [])] : "–");

export function open(place, query, refresh) {
  let words = query.get("search") ?? "";
  const number = make("p", { class: "quiet", id: "found", role: "status" });
  const body = make("div", {});
  const view = {
    async refresh() {
      const all = await ask("certificates", { search: words, limit: 500 });
      const text = all.found > all.certificates.length
        ? `the first ${all.certificates.length} of ${count(all.found)}: search for less` : `${count(all.found)} of ${count(all.total)} certificates`;
      if (number.textContent !== text) number.textContent = text;
      const rows = all.certificates.map((one) => [
        make("span", { class: one.days < 0 ? "bad" : one.days < 14 ? "warn" : "" }, one.days < 0 ? "expired" : `${one.days} days`),
        time(one.not_after),
        name(one.secret),
        names(one.names, one.more_names),
        name(one.issuer),
        names(one.hosts),
        one.mismatched.length ? make("span", { class: "bad" }, names(one.mismatched)) : "–",
      ]);
      body.replaceChildren(
        table("Certificates", ["Left", "Expires", "Secret", "Names", "Issuer", "Used by", "Not valid for"], rows),
        make("h2", {}, "Hosts with the default certificate"),
        make("p", { class: "quiet" }, "It is ", all.default ? name(all.default) : "made by the process itself", ". These hosts name no certificate, or one that cannot be used: ", make("a", { href: "#problems?search=tls" }, "the problems of their Ingresses say why"), "."),
        make("ul", { class: "tight" }, all.on_default.map((host) => make("li", {}, name(host)))),
      );
    },
  };
  place.append(
    make("form", { role: "search", submit: (event) => event.preventDefault() }, search("Secret, name or host", words, (text) => {
      words = text;
      refresh();
    })),
    number, body,
  );
  return view;
}
