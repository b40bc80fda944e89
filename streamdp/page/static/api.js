// The questions under v1/ (docs/serve.md), and what the page alone has (docs/page.md).

async function ask(path, how) {
  try {
    return await fetch(path, how);
  } catch {
    throw new Error("The connection is lost: the run may have ended");
  }
}

export async function get(path) {
  const answer = await ask(path, { headers: { accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

export async function post(path, body) {
  const answer = await ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error || answer.statusText);
  return told;
}

// Ticks; comes back by itself when the run is gone for a while, and asks for what it has missed.
export function listen(tell, lost) {
  let last = "";
  const open = () => {
    const source = new EventSource(`api/stream${last ? `?last_event_id=${encodeURIComponent(last)}` : ""}`);
    const take = (event) => {
      last = event.lastEventId;
      tell(JSON.parse(event.data), event.type === "hello");
    };
    source.addEventListener("hello", take);
    source.addEventListener("tick", take);
    source.addEventListener("error", () => {
      lost();
      source.close();
      setTimeout(open, 1500);
    });
  };
  open();
}
