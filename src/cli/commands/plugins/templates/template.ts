/** The parts of a new plugin that differ between templates. */
export interface TemplateParts {
  /** Manifest fields in addition to id and version. */
  manifest: Record<string, unknown>;
  files: Record<string, string>;
  /** Sentence about the purpose of the plugin, for the README of the plugin. */
  readme: string;
}

export type Template = (id: string) => TemplateParts;

/** Removes the common indentation of the lines of a template literal. */
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
