import type { ComponentChildren } from 'preact';

export interface Column<T> {
  name: string;
  value: (item: T) => ComponentChildren;
  isNumber?: boolean;
}

interface DataTableProps<T> {
  label: string;
  columns: ReadonlyArray<Column<T>>;
  items: readonly T[];
  keyOf: (item: T) => string;
}

/** Table of things. On a narrow screen, it scrolls sideways in its own box. */
export function DataTable<T>({ label, columns, items, keyOf }: DataTableProps<T>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} class={isNumber ? 'number' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)}>
              {columns.map(({ name, value, isNumber }) => (
                <td key={name} class={isNumber ? 'number' : undefined}>
                  {value(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
