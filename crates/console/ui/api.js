// Asks the API. The token, where one is needed, stays in this page's memory.

let token = null;

function headers() {
  return token === null ? {} : { "Fairway-Token": token };
}

async function refused(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim();
  }
}

function askForToken(why) {
  const given = window.prompt(`${why}\n\nThe token of --admin-token-file:`);
  if (given === null || given === "") throw new Error(why);
  token = given.trim();
}

async function request(path, options = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: headers(), cache: "no-store" });
    if (response.ok) return response;
    const why = await refused(response);
    if (response.status !== 401 && !(response.status === 403 && token === null)) throw new Error(why);
    askForToken(why);
  }
}

export async function ask(view, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) if (one !== "" && one !== null && one !== undefined) query.append(name, one);
  }
  const path = `/api/v1/${view}${query.size ? `?${query}` : ""}`;
  return (await request(path, { signal })).json();
}

// Follows the events until the page goes; whatever ends the stream, it is begun anew.
export async function follow(tell, state) {
  for (;;) {
    try {
      const response = await request("/api/v1/events");
      state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = /^event: (.*)$/m.exec(text.slice(0, end));
          text = text.slice(end + 2);
          if (event) tell(event[1]);
        }
      }
    } catch (error) {
      state(`not live: ${error.message}`);
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}
