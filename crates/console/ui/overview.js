// What serves, how it goes, and what wants a look.

import { ask } from "/ui/api.js";
import { bytes, count, facts, latency, make, name, rate, time } from "/ui/dom.js";

const several = (times, what) => `${count(times)} ${what}${times === 1 ? "" : "s"}`;
const link = (view, text) => make("a", { href: `#${view}` }, text);

function trouble(all) {
  const { error, warning } = all.problems;
  const lines = [
    all.refused && ["The engine refused the newest change: ", name(all.refused), ". What was served stays."],
    error > 0 && [link("problems", several(error, "error")), " in objects: something asked for is not served."],
    warning > 0 && [link("problems", several(warning, "warning")), " in objects."],
    all.empty_upstreams > 0 && [link("routes", several(all.empty_upstreams, "upstream")), " without any endpoint: routes to it answer 503."],
    all.next_expiry !== null && all.next_expiry < all.now + 14 * 86400 && [link("certificates", "A certificate"), " expires within 14 days, or has."],
    all.pressure && all.pressure !== "normal" && [link("limits", `Pressure is ${all.pressure}`), ": load is being shed."],
    all.traffic.errors > 0 && [link("routes?sort=errors", `${rate(all.traffic.errors)} errors`), " a second (5xx)."],
  ];
  return lines.filter(Boolean).map((line) => make("li", {}, line));
}

export function open(place) {
  const body = make("div", {});
  place.append(body);
  return {
    async refresh() {
      const all = await ask("overview");
      const lines = trouble(all);
      body.replaceChildren(
        make("h2", {}, "What wants a look"),
        lines.length ? make("ul", { class: "tight", id: "trouble" }, lines) : make("p", { class: "good" }, "Nothing."),
        make("h2", {}, "Traffic"),
        all.counted ? "" : make("p", { class: "quiet" }, "Requests are not counted: --enable-metrics=false."),
        facts([
          ["Requests a second", rate(all.traffic.rate)],
          ["Errors (5xx) a second", rate(all.traffic.errors), all.traffic.errors > 0 ? "bad" : ""],
          ["p50", latency(all.traffic.p50)],
          ["p99", latency(all.traffic.p99)],
          ["Requests since the start", count(all.traffic.requests)],
          ["Connections", count(all.connections?.active)],
          ["Memory", bytes(all.memory)],
          ["Pressure", all.pressure ?? "–"],
        ]),
        make("h2", {}, "In force"),
        facts([
          ["Hosts", count(all.hosts)],
          ["Routes", count(all.routes)],
          ["Upstreams", count(all.upstreams)],
          ["Certificates", count(all.certificates)],
          ["First expiry", time(all.next_expiry)],
          ["Generation", count(all.generation)],
          ["Since", time(all.generation_at)],
        ]),
        make("h2", {}, "This replica"),
        facts([
          ["Version", all.version],
          ["Engine", all.engine],
          ["Class", name(all.class)],
          ["Pod", name(all.pod || "–")],
          ["Leader", all.leads === null ? "no election" : all.leads ? "yes" : "no"],
          ["Started", time(all.started)],
        ]),
      );
    },
  };
}
