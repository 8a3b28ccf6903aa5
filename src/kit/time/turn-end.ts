/**
 * Returns a function that collects items and passes them to `handle` at the end of the event-loop turn. A batch wakes
 * the receiving process only once. `handle` must not throw.
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
