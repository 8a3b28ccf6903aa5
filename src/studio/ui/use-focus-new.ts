import { useEffect } from 'preact/hooks';
import { useLocation } from 'preact-iso';

/** Moves the focus to the first field of the form for a new object if the address wants one, as actions of the palette do. */
export function useFocusNew(kind: string, id: string): void {
  const isWanted = useLocation().query.new === kind;
  useEffect(() => {
    if (isWanted) document.getElementById(id)?.focus();
  }, [isWanted, id]);
}
