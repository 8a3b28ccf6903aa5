/** Parts specific to one kind of plugin. */
export interface TemplateParts {
  /** Manifest fields besides id and version. */
  manifest: Record<string, unknown>;
  files: Record<string, string>;
  /** One sentence about the purpose of the plugin. */
  readme: string;
}

export type Template = (id: string) => TemplateParts;

/** Removes the indentation of a template literal. */
export function text(indented: string): string {
  const lines = indented.replace(/^\n/, '').trimEnd().split('\n');
  const depths = lines.filter((line) => line.trim() !== '').map((line) => line.search(/\S/));
  const depth = Math.min(...depths);
  return `${lines.map((line) => line.slice(depth)).join('\n')}\n`;
}

/** Returns the last part of an id, for names and paths: `orders` for `@acme/orders`. */
export function shortName(id: string): string {
  return id.split('/').at(-1)!;
}
