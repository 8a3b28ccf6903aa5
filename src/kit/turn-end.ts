/**
 * Handles what is put off together, at the end of the event loop's turn: once everything that the turn had to read has
 * been read. For writes to many sockets: the process at the other end is woken once for a bundle instead of for each, and
 * waking it is the dearest part of a small write. `handle` must not throw.
 */
export function atTurnEnd<Item>(handle: (item: Item) => void): (item: Item) => void {
  let waiting: Item[] = [];
  function handleAll(): void {
    const due = waiting;
    waiting = [];
    for (const item of due) handle(item);
  }
  return (item) => {
    if (waiting.length === 0) setImmediate(handleAll);
    waiting.push(item);
  };
}
