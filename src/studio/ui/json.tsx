export { parsedJson } from './parsed-json.ts';

/** A value as indented JSON. */
export function Json({ value, label }: { value: unknown; label: string }) {
  return <Preformatted text={JSON.stringify(value, null, 2)} label={label} />;
}

/** A text whose lines are shown as they are. */
export function Preformatted({ text, label }: { text: string; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
    <section class="json" aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  );
}
