import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { ACTIONS, type Entry, idEntries, loadNames, matching, SCREENS, searchesFor } from './entries.ts';
import './palette.css';

/** Further matches are found by typing more. */
const MAX_SHOWN = 50;

/** Dialog that opens screens, things by name or id, and actions. It is used with the keyboard alone. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const { entries, isLoading } = useEntries(text.trim());
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    // A modal dialog keeps the focus inside and returns it when it closes.
    if (!dialog.current!.open) dialog.current!.showModal();
  }, []);
  const choose = ({ target }: Entry): void => {
    dialog.current!.close();
    if (typeof target === 'string') route(target);
    else target();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = movedBy(event.key, active, entries.length);
    if (next !== undefined) setActive(next);
    else if (event.key === 'Enter' && entries[active]) choose(entries[active]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to" onClose={onClose}>
      <input
        role="combobox"
        aria-label="Screen, name or id"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-autocomplete="list"
        aria-activedescendant={entries[active] ? optionId(active) : undefined}
        placeholder="Screen, name or id"
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Options entries={entries} active={active} onChoose={choose} />
      <p class="keys" role="status">
        {entries.length === 0 ? (isLoading ? 'Loading…' : 'Nothing has this name or id.') : ''}
      </p>
    </dialog>
  );
}

interface OptionsProps {
  entries: readonly Entry[];
  active: number;
  onChoose: (entry: Entry) => void;
}

function Options({ entries, active, onChoose }: OptionsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current!.children[active]?.scrollIntoView({ block: 'nearest' });
  }, [active, entries]);
  return (
    <div ref={list} id="palette-list" role="listbox" aria-label="Matches" tabIndex={-1}>
      {entries.map((entry, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys.
        <div
          key={entry.id}
          id={optionId(index)}
          class="option"
          role="option"
          tabIndex={-1}
          aria-selected={index === active}
          onClick={() => onChoose(entry)}
        >
          <span class="kind">{entry.kind}</span> <span>{entry.label}</span>{' '}
          {entry.hint && <span class="reason">{entry.hint}</span>}
        </div>
      ))}
    </div>
  );
}

const optionId = (index: number): string => `palette-option-${index}`;

/** Returns the entry that a key selects. Undefined for keys that select nothing. */
function movedBy(key: string, active: number, count: number): number | undefined {
  if (count === 0) return undefined;
  if (key === 'ArrowDown') return (active + 1) % count;
  if (key === 'ArrowUp') return (active + count - 1) % count;
  if (key === 'PageDown') return Math.min(active + 10, count - 1);
  if (key === 'PageUp') return Math.max(active - 10, 0);
  return undefined;
}

/** Entries for a text: what an id names, then names, then searches. */
function useEntries(text: string): { entries: readonly Entry[]; isLoading: boolean } {
  const [names, setNames] = useState<readonly Entry[]>();
  useEffect(() => void loadNames().then(setNames), []);
  const entries = useMemo(() => {
    const named = matching([...SCREENS, ...ACTIONS, ...(names ?? [])], text);
    // While names are loaded, a search would take the place of the name that a person types.
    const searches = names ? searchesFor(text) : [];
    return [...idEntries(text), ...named.slice(0, MAX_SHOWN), ...searches];
  }, [names, text]);
  return { entries, isLoading: names === undefined };
}
