/**
 * Returns a function that makes names unique by appending a number. The last number of each name is stored to avoid
 * repeated searches.
 */
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
