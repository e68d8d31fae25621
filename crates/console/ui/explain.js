// Why a request would go where it goes, and why a real one went there.

import { ask } from "/ui/api.js";
import { make, name, table, time } from "/ui/dom.js";

const decisions = (all) => table("Decisions", ["Step", "Outcome", "Asked for by"], all.map((one) => [one.step, name(one.outcome), one.by ? by(one.by) : "–"]));

export function open(place, query) {
  const url = make("input", { name: "url", required: true, value: query.get("url") ?? "", placeholder: "https://shop.example/cart", autocomplete: "off", spellcheck: "false" });
  const method = make("input", { name: "method", value: "GET", size: "8", autocomplete: "off" });
  const client = make("input", { name: "client", placeholder: "192.0.2.1", size: "16", autocomplete: "off" });
  const header = make("textarea", { name: "header", rows: "2", placeholder: "Cookie: a=b", spellcheck: "false" });
  const body = make("div", { "aria-live": "polite" });
  const explain = async () => {
    if (!body.firstChild) body.append(make("p", { class: "quiet" }, "Looking …"));
    try {
      const headers = header.value.split("\n").map((text) => text.trim());
      const all = await ask("explain", { url: url.value, method: method.value, client: client.value, header: headers });
      body.replaceChildren(
        make("ul", { class: "tight" }, all.notes.map((text) => make("li", { class: "warn" }, name(text)))),
        decisions(all.decisions),
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
  return follow(place);
}

// One real request: it is waited for by its id, for as long as the view is open.
function follow(place) {
  const fresh = () => `look-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const id = make("input", { name: "id", required: true, maxlength: "128", value: fresh(), autocomplete: "off", spellcheck: "false" });
  const body = make("div", { "aria-live": "polite" });
  let wanted = null;
  let timer = 0;
  const look = async () => {
    if (wanted === null || !place.contains(body)) return;
    const asked = wanted;
    try {
      const story = await ask("trace", { id: asked });
      if (asked !== wanted) return;
      if (story.awaited) {
        body.replaceChildren(make("p", {}, "Waiting. Send it now: ", make("code", {}, `curl -H 'X-Request-ID: ${asked}' https://…`)));
        clearTimeout(timer);
        timer = setTimeout(look, 1000);
        return;
      }
      wanted = null;
      body.replaceChildren(make("p", {}, "Answered ", time(story.at)), decisions(story.decisions));
    } catch (error) {
      wanted = null;
      body.replaceChildren(make("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  place.append(
    make("h2", {}, "Follow a real request"),
    make("p", { class: "quiet" }, "The next request with this X-Request-ID that comes to this replica is told of; it is answered as ever."),
    make("form", { id: "follow", submit: (event) => {
      event.preventDefault();
      wanted = id.value;
      look();
    } }, make("label", { class: "wide" }, "X-Request-ID", id), make("button", {}, "Wait for it")),
    body,
  );
  return {};
}

// The Ingress that is behind a decision is found among the routes.
function by(text) {
  const ingress = /Ingress ([^ ]+\/[^ ]+)/.exec(text);
  return ingress ? make("a", { href: `#routes?search=${encodeURIComponent(ingress[1])}` }, name(text)) : name(text);
}
