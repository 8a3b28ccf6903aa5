import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

type Palette = ComponentType<{ onClose: () => void }>;

/** Button and key (`Ctrl-K`, `Cmd-K`) that open the palette. Its code is loaded when it is first opened. */
export function PaletteKey() {
  const [palette, setPalette] = useState<{ Palette: Palette }>();
  const [isOpen, setOpen] = useState(false);
  const open = (): void => {
    setOpen(true);
    // A failed load, for example after an upgrade, is tried again at the next opening.
    import('./palette.tsx').then(
      ({ default: Palette }) => setPalette({ Palette }),
      () => setOpen(false),
    );
  };
  // Not useEffect, which runs after the paint: the key works as soon as the button is visible.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <>
      <button type="button" aria-keyshortcuts="Control+K Meta+K" title="Ctrl-K" onClick={open}>
        Go to…
      </button>
      {isOpen && palette && <palette.Palette onClose={() => setOpen(false)} />}
    </>
  );
}
