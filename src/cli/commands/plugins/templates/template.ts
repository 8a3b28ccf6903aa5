/** What differs from one kind of plugin to the next. */
export interface TemplateParts {
  /** The manifest's entries beside id and versions. */
  manifest: Record<string, unknown>;
  files: Record<string, string>;
  /** One sentence: what it does. */
  readme: string;
}

export type Template = (id: string) => TemplateParts;

/** A text without the indentation it has in our sources. */
export function text(indented: string): string {
  const lines = indented.replace(/^\n/, '').trimEnd().split('\n');
  const depths = lines.filter((line) => line.trim() !== '').map((line) => line.search(/\S/));
  const depth = Math.min(...depths);
  return `${lines.map((line) => line.slice(depth)).join('\n')}\n`;
}

/** The last part of an id, for names and paths: `orders` of `@acme/orders`. */
export function shortName(id: string): string {
  return id.split('/').at(-1)!;
}
