/**
 * Returns a function that collects items and handles them together at the end of the event-loop turn. It is used to
 * batch writes to sockets: the peer process then wakes up once per batch, and waking it up is the main cost of a small
 * write. `handle` must not throw.
 */
export function atTurnEnd<Item>(handle: (item: Item) => void): (item: Item) => void {
  let queued: Item[] = [];
  function handleAll(): void {
    const due = queued;
    queued = [];
    for (const item of due) handle(item);
  }
  return (item) => {
    if (queued.length === 0) setImmediate(handleAll);
    queued.push(item);
  };
}
