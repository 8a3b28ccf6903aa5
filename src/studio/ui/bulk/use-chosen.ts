import { useEffect, useState } from 'preact/hooks';

export interface Chosen {
  keys: ReadonlySet<string>;
  toggle(key: string): void;
  clear(): void;
}

/** Chosen rows of a list. Another list, as named by `of`, begins without chosen rows. */
export function useChosen(of: unknown): Chosen {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setKeys(new Set()), [JSON.stringify(of)]);
  return {
    keys,
    toggle: (key) =>
      setKeys(
        (before) => new Set(before.has(key) ? [...before].filter((each) => each !== key) : [...before, key]),
      ),
    clear: () => setKeys(new Set()),
  };
}
