import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';

export interface Filter {
  name: string;
  label: string;
  /** Choices of a list. Without them, the filter is a text. */
  options?: readonly string[];
  placeholder?: string;
}

/** Returns the filters in the address, and a function that changes one. */
export function useFilters<Name extends string>(
  names: readonly Name[],
): [Partial<Record<Name, string>>, (name: Name, value: string) => void] {
  const { query, path, route } = useLocation();
  const filters = Object.fromEntries(
    names.filter((name) => query[name]).map((name) => [name, query[name]]),
  ) as Partial<Record<Name, string>>;
  const change = (name: Name, value: string): void => {
    // Two changes can follow each other before the page is rendered, so the address is read again.
    const search = new URLSearchParams(location.search);
    if (value === '') search.delete(name);
    else search.set(name, value);
    route(search.size > 0 ? `${path}?${search}` : path, true);
  };
  return [filters, change];
}

/** Returns filters in words: `Status: failed, Plugin: @acme/orders`. */
export function filtersText<Name extends string>(
  filters: ReadonlyArray<Filter & { name: Name }>,
  values: Partial<Record<Name, string>>,
): string {
  const parts = filters.flatMap(({ name, label }) => (values[name] ? [`${label}: ${values[name]}`] : []));
  return parts.length === 0 ? 'no filter' : parts.join(', ');
}

const TYPING_MS = 300;

export function Filters<Name extends string>({
  filters,
  values,
  onChange,
}: {
  filters: ReadonlyArray<Filter & { name: Name }>;
  values: Partial<Record<Name, string>>;
  onChange: (name: Name, value: string) => void;
}) {
  return (
    <search class="filters">
      {filters.map((filter) => (
        <div key={filter.name}>
          <label for={`filter-${filter.name}`}>{filter.label}</label>
          {filter.options ? (
            <select
              id={`filter-${filter.name}`}
              value={values[filter.name] ?? ''}
              onChange={(event) => onChange(filter.name, event.currentTarget.value)}
            >
              <option value="">all</option>
              {filter.options.map((option) => (
                <option key={option} value={option}>
                  {option.replace('_', ' ')}
                </option>
              ))}
            </select>
          ) : (
            <TextFilter
              id={`filter-${filter.name}`}
              value={values[filter.name] ?? ''}
              placeholder={filter.placeholder ?? ''}
              onChange={(value) => onChange(filter.name, value)}
            />
          )}
        </div>
      ))}
    </search>
  );
}

interface TextFilterProps {
  id: string;
  value: string;
  placeholder: string;
  onChange: (value: string) => void;
}

/** Text of a filter. It takes effect when typing pauses, or with Enter. */
function TextFilter({ id, value, placeholder, onChange }: TextFilterProps) {
  const [text, setText] = useState(value);
  const change = useRef(onChange);
  change.current = onChange;
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => change.current(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <input
      id={id}
      type="search"
      value={text}
      placeholder={placeholder}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && text.trim() !== value) onChange(text.trim());
      }}
    />
  );
}
