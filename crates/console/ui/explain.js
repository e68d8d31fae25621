// Why a request would go where it goes.

import { ask } from "/ui/api.js";
import { make, name, table } from "/ui/dom.js";

export function open(place, query) {
  const url = make("input", { name: "url", required: true, value: query.get("url") ?? "", placeholder: "https://shop.example/cart", autocomplete: "off", spellcheck: "false" });
  const method = make("input", { name: "method", value: "GET", size: "8", autocomplete: "off" });
  const client = make("input", { name: "client", placeholder: "192.0.2.1", size: "16", autocomplete: "off" });
  const header = make("textarea", { name: "header", rows: "2", placeholder: "Cookie: a=b", spellcheck: "false" });
  const body = make("div", { "aria-live": "polite" });
  const explain = async () => {
    try {
      const headers = header.value.split("\n").map((text) => text.trim());
      const all = await ask("explain", { url: url.value, method: method.value, client: client.value, header: headers });
      body.replaceChildren(
        make("ul", { class: "tight" }, all.notes.map((text) => make("li", { class: "warn" }, name(text)))),
        table("Decisions", ["Step", "Outcome", "Asked for by"], all.decisions.map((one) => [one.step, name(one.outcome), one.by ? by(one.by) : "–"])),
      );
    } catch (error) {
      body.replaceChildren(make("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  place.append(
    make("p", { class: "quiet" }, "Nothing is sent to anybody: authenticators are taken to agree, and the upstream to answer 200."),
    make("form", { submit: (event) => {
      event.preventDefault();
      explain();
    } },
    make("label", { class: "wide" }, "URL", url), make("label", {}, "Method", method), make("label", {}, "Client", client),
    make("label", { class: "wide" }, "Header fields, one a line", header), make("button", {}, "Explain")),
    body,
  );
  if (url.value) explain();
  return {};
}

// The Ingress that is behind a decision is found among the routes.
function by(text) {
  const ingress = /Ingress ([^ ]+\/[^ ]+)/.exec(text);
  return ingress ? make("a", { href: `#routes?search=${encodeURIComponent(ingress[1])}` }, name(text)) : name(text);
}
