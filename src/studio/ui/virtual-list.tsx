import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { inNamespace } from '../app/namespace.ts';
import type { Chosen } from './bulk/use-chosen.ts';

interface VirtualListProps<T> {
  label: string;
  items: readonly T[];
  keyOf: (item: T) => string;
  rowHeight: number;
  /** Key of the selected row. The first row stands for a key that the list lacks. */
  selected: string | undefined;
  onSelect: (key: string) => void;
  hrefOf: (item: T) => string;
  /** Called when the end of the list comes into view. */
  onEnd: () => void;
  /** Rows chosen for an action, by key. `x` and the space bar choose a row. */
  chosen?: Chosen;
  children: (item: T, isSelected: boolean) => ComponentChildren;
}

const OVERSCAN = 12;
/** The next page is loaded when this many rows are left, so that it is there before they have been scrolled through. */
const ROWS_AHEAD = 60;

/**
 * List that renders only the rows in view. `j` and `k` or the arrow keys select a row, Enter opens it, `x` and the space
 * bar choose it.
 */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { label, items, keyOf, rowHeight, onSelect, hrefOf, onEnd, chosen, children } = props;
  const { route } = useLocation();
  const found = items.findIndex((item) => keyOf(item) === props.selected);
  const selected = Math.max(found, 0);
  /** Keeps the row that is shown as selected, so that keys act on it although rows arrive above it. */
  const keep = (): void => {
    if (found === -1 && items[0]) onSelect(keyOf(items[0]));
  };
  useEffect(() => {
    if (props.selected !== undefined) keep();
  }, [props.selected, found]);
  const box = useRef<HTMLDivElement>(null);
  const [, rerender] = useState(0);
  const virtualizer = useMemo(
    () =>
      new Virtualizer<HTMLDivElement, HTMLElement>({
        count: 0,
        getScrollElement: () => box.current,
        estimateSize: () => rowHeight,
        overscan: OVERSCAN,
        scrollToFn: elementScroll,
        observeElementRect,
        observeElementOffset,
        onChange: () => rerender((count) => count + 1),
      }),
    [rowHeight],
  );
  virtualizer.setOptions({ ...virtualizer.options, count: items.length });
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  const rows = virtualizer.getVirtualItems();
  const last = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= items.length - ROWS_AHEAD) onEnd();
  }, [last, items.length]);

  const select = (index: number): void => {
    const next = Math.min(Math.max(index, 0), items.length - 1);
    if (items[next]) onSelect(keyOf(items[next]));
    virtualizer.scrollToIndex(next, { align: 'auto' });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const item = items[selected];
    const isToggle = chosen && (event.key === 'x' || event.key === ' ');
    if (step === undefined && !(item && (isToggle || event.key === 'Enter'))) return;
    event.preventDefault();
    if (step !== undefined) select(selected + step);
    // A key that is held down acts once.
    else if (!item || event.repeat) return;
    else if (isToggle) chosen.toggle(keyOf(item));
    else route(hrefOf(item));
  };

  return (
    <div
      ref={box}
      class={chosen ? 'virtual choosable' : 'virtual'}
      role="listbox"
      aria-label={label}
      aria-activedescendant={items[selected] ? `row-${keyOf(items[selected])}` : undefined}
      tabIndex={0}
      onFocusIn={keep}
      onKeyDown={onKeyDown}
    >
      <div class="virtual-rows" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {rows.map(({ index, start }) => {
          const item = items[index]!;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys.
            <div
              key={keyOf(item)}
              id={`row-${keyOf(item)}`}
              class="row"
              role="option"
              tabIndex={-1}
              aria-selected={index === selected}
              aria-checked={chosen?.keys.has(keyOf(item))}
              style={{ transform: `translateY(${start}px)`, height: `${rowHeight}px` }}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey) window.open(inNamespace(hrefOf(item)));
                else route(hrefOf(item));
              }}
            >
              {chosen && <Check chosen={chosen} id={keyOf(item)} onSelect={onSelect} />}
              {children(item, index === selected)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Check({ chosen, id, onSelect }: { chosen: Chosen; id: string; onSelect: (key: string) => void }) {
  const onClick = (event: MouseEvent): void => {
    event.stopPropagation();
    onSelect(id);
    chosen.toggle(id);
  };
  return (
    <span class="check" aria-hidden="true" onClick={onClick}>
      {chosen.keys.has(id) ? '☑' : '☐'}
    </span>
  );
}

const STEPS: Record<string, number> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
