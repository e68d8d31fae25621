// What the last generations changed.

import { ask } from "/ui/api.js";
import { make, name, several, time } from "/ui/dom.js";

const WORDS = {
  "host-added": "host is served", "host-removed": "host is gone", "path-added": "path is served", "path-removed": "path is gone",
  owner: "another owner", backend: "goes elsewhere", setting: "setting", endpoints: "endpoints", certificate: "certificate", stream: "port",
};

function line(one) {
  return make("li", {},
    make("span", { class: "quiet" }, `${WORDS[one.what] ?? one.what}: `), name(one.subject),
    one.setting ? [" ", name(one.setting)] : "",
    one.from ? [" from ", name(one.from)] : "", one.to ? [" to ", name(one.to)] : "",
    one.object ? [" (", name(one.object), ")"] : "");
}

function generation(one) {
  const touched = [[one.hosts, "host"], [one.upstreams, "upstream"], [one.certificates, "certificate"]]
    .filter(([times]) => times > 0).map(([times, what]) => several(times, what)).join(", ");
  return make("li", { "data-generation": one.generation },
    make("h2", {}, one.refused ? "Refused" : `Generation ${one.generation}`, " ", make("small", { class: "quiet" }, time(one.at), touched ? ` ${touched}` : "")),
    one.refused ? make("p", { class: "bad" }, name(one.refused)) : "",
    make("ul", { class: "tight" }, one.differences.map(line)),
    one.more ? make("p", { class: "quiet" }, "and more") : "");
}

export function open(place) {
  const list = make("ol", { class: "plain", id: "generations" });
  place.append(make("p", { class: "quiet" }, "The newest first; each has been in force since its time."), list);
  return {
    async refresh() {
      const all = await ask("changes", { limit: 200 });
      list.replaceChildren(...all.generations.map(generation));
    },
  };
}
