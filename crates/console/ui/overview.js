// What serves, how it goes, and what wants a look.

import { ask } from "/ui/api.js";
import { bytes, count, facts, latency, make, name, rate, several, table, time } from "/ui/dom.js";

const link = (view, text) => make("a", { href: `#${view}` }, text);

function trouble(all) {
  const { error, warning } = all.problems;
  const lines = [
    all.refused && ["The engine refused the newest change: ", name(all.refused), ". What was served stays."],
    all.ingresses > 0 && all.served_ingresses === 0 && [`None of ${count(all.ingresses)} Ingresses is served: their class is not ours or does not exist, their namespace is not watched, or they have mistakes; fairway check with the same flags says why of each.`],
    error > 0 && [link("problems", several(error, "error")), " in objects: something asked for is not served."],
    warning > 0 && [link("problems", several(warning, "warning")), " in objects."],
    all.empty_upstreams > 0 && [link("routes", several(all.empty_upstreams, "upstream")), " without any endpoint: routes to it answer 503."],
    all.next_expiry !== null && all.next_expiry < all.now + 14 * 86400 && [link("certificates", "A certificate"), " expires within 14 days, or has."],
    all.pressure && all.pressure !== "normal" && [link("limits", `Pressure is ${all.pressure}`), ": load is being shed."],
    all.traffic.errors > 0 && [link("routes?sort=errors", `${rate(all.traffic.errors)} errors`), " a second (5xx)."],
  ];
  return lines.filter(Boolean).map((line) => make("li", {}, line));
}

// The replicas side by side, where the API server tells of them.
function beside({ rows, more, unknown }) {
  if (unknown) return [make("h2", {}, "Replicas"), make("p", { class: "quiet", id: "replicas" }, "Not known: ", name(unknown))];
  if (rows.length === 0) return [];
  const line = (one) => [
    make("span", {}, name(one.pod), one.here ? " (this one)" : ""), name(one.node ?? "–"),
    make("span", { class: one.ready ? "good" : "bad" }, one.ready ? "ready" : "not ready"),
    one.leads ? "leads" : "", time(one.since), one.version ?? "–",
    one.same === null ? "–" : make("span", { class: one.same ? "" : "bad" }, one.same ? "the same" : "another"),
    rate(one.rate), count(one.connections), one.memory === null ? "–" : bytes(one.memory), one.unreached ? name(one.unreached) : "",
  ];
  return [
    make("h2", {}, "Replicas"),
    table("Replicas", ["Pod", "Node", "State", "Leader", "Since", "Version", "Configuration", "Req/s", "Connections", "Memory", "Not reached"], rows.map(line)),
    more ? make("p", { class: "quiet" }, `and ${count(more)} more`) : "",
  ];
}

// With --shadow: what would have become of the requests that copies came of.
async function copies(all) {
  if (all.copies === null) return [];
  const shadow = await ask("shadow");
  const sums = Object.entries(shadow.copies).map(([decision, times]) => `${decision}: ${count(times)}`).join(", ");
  const rows = shadow.groups.slice(0, 50).map((one) => [
    count(one.count), one.status ? `${one.decision} ${one.status}` : one.decision, one.by, name(one.host), name(one.ingress ?? "–"), name(one.upstream ?? "–"), name(one.example),
  ]);
  return [
    make("h2", {}, "Copies (--shadow): nothing is served here"),
    make("p", { id: "copies" }, `${count(all.copies)} copies. ${sums}`),
    shadow.without_client > 0 ? make("p", { class: "quiet" }, `${count(shadow.without_client)} did not say whose request they were: address lists and limits judged who sent the copy.`) : "",
    table("Copies", ["Copies", "Would have been", "Decided by", "Host", "Ingress", "Upstream", "First of them"], rows),
  ];
}

export function open(place) {
  const body = make("div", {});
  place.append(body);
  return {
    async refresh() {
      const all = await ask("overview");
      const lines = trouble(all);
      const copied = await copies(all);
      body.replaceChildren(
        make("h2", {}, "What wants a look"),
        lines.length ? make("ul", { class: "tight", id: "trouble" }, lines) : make("p", { class: "good" }, "Nothing."),
        ...copied,
        make("h2", {}, "Traffic"),
        all.counted ? "" : make("p", { class: "quiet" }, "Requests are not counted: --enable-metrics=false."),
        facts([
          ["Requests a second", rate(all.traffic.rate)],
          ["Errors (5xx) a second", rate(all.traffic.errors), all.traffic.errors > 0 ? "bad" : ""],
          ["p50", latency(all.traffic.p50)],
          ["p99", latency(all.traffic.p99)],
          ["Requests since the start", count(all.connections?.requests)],
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
        ...beside(all.replicas),
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
