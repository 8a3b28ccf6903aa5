/** Returns a function that makes names unique by appending a number. */
export function createNumbering(isTaken: (name: string) => boolean): (wanted: string) => string {
  const last = new Map<string, number>();
  return (wanted) => {
    for (let count = (last.get(wanted) ?? 0) + 1; ; count++) {
      const name = count === 1 ? wanted : `${wanted}${count}`;
      if (isTaken(name)) continue;
      last.set(wanted, count);
      return name;
    }
  };
}
