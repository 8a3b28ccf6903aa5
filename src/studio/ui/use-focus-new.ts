import { useEffect } from 'preact/hooks';
import { useLocation } from 'preact-iso';

/** Returns whether the address wants a new object of a kind, as actions of the palette do. */
export function useWantsNew(kind: string): boolean {
  return useLocation().query.new === kind;
}

/** Moves the focus to the first field of the form for a new object when the address wants one. */
export function useFocusNew(kind: string, id: string): void {
  const isWanted = useWantsNew(kind);
  useEffect(() => {
    if (isWanted) document.getElementById(id)?.focus();
  }, [isWanted, id]);
}
