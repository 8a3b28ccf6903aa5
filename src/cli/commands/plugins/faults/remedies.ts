import type { PluginFault } from '../../../../plugins/index.ts';

type Fault = Pick<PluginFault, 'path' | 'message'> & { code: string };

/** Remedies by the message of the fault. The first matching entry is used. `$1` stands for the first group. */
const BY_MESSAGE: ReadonlyArray<readonly [RegExp, string]> = [
  [/the folder does not exist/, 'Pass the folder of the plugin: svc plugins validate <folder>'],
  [
    /^The folder has no svc\.plugin\.json/,
    'Create svc.plugin.json, or a new plugin: svc plugins create <id>',
  ],
  [/cannot be read as JSON/, 'Correct the JSON syntax there. JSON has neither comments nor trailing commas.'],
  [/^The manifest module/, 'Correct the module. Its default export must be the manifest.'],
  [/did you mean "?([^"?]+)"?\?/, 'Write "$1".'],
  [/is not a key of|is not a known key/, 'Remove the key. docs/manifest.md lists all keys.'],
  [/is already declared at (\S+)/, 'Remove one of the two entries, or rename this one. The other is $1.'],
  [/already belongs to the plugin (\S+?)\.?$/, 'Rename it, or remove it from the plugin $1.'],
  [/already declares the event type/, 'Rename the event type, or use the same schema in both manifests.'],
  [/form a cycle/, 'Remove one of these dependencies.'],
  [
    /is required, but it is not installed/,
    'Install the plugin (svc plugins install), or remove the dependency.',
  ],
  [/but (\S+) is required/, 'Install a version in the range $1, or change the range.'],
  [/there is no file (\S+) in the plugin/, 'Create the file $1, or correct the path.'],
  [/must lie inside the plugin|is outside of the plugin/, 'Move the file into the folder of the plugin.'],
  [/is a symbolic link that leaves/, 'Replace the link by a copy of the file.'],
  [/^The schema "([^"#]*)[^"]*" cannot be used/, 'Correct the JSON Schema in $1, or the reference to it.'],
  [/(\S+) has no export "([^"]+)"/, 'Export $2 from $1, or correct the name after "#".'],
  [
    /is a (\S+) handler, but a (\S+) handler is needed/,
    'Define the export with the define function for a $2.',
  ],
  [/could not be loaded/, 'Correct the code at this position. The manifest refers to it.'],
  [/; (?:it has|there is) (.+)$/, 'Use one of these names: $1.'],
  [/has no command|has no job|declares no webhook/, 'Declare it in that plugin, or remove the reference.'],
  [/there is no plugin/, 'Install the plugin, or correct its id.'],
  [/workflow "[^"]+" does not exist/, 'Correct the workflow id, or add the workflow.'],
  [/nothing runs "/, 'Use a built-in action or <plugin>/<command>; docs/workflows.md lists the actions.'],
  [/^is missing; it must be one of (.+)$/, 'Add the key with one of these values: $1.'],
  [/^is missing/, 'Add the key. docs/manifest.md describes it.'],
  [/must be one of (.+)$/, 'Use one of these values: $1.'],
  [/^is none of the known types: (.+)$/, 'Use one of these types: $1.'],
  [/^must (.+)$/, 'Change the value: it must $1.'],
  [/more faults$/, 'Correct the other faults first, then validate again.'],
];

const BY_CODE: Readonly<Record<string, string>> = {
  INVALID_MANIFEST: 'Correct the value. docs/manifest.md describes all keys.',
  INVALID_HANDLER: 'Correct the reference <file>#<export>, or the file that it names.',
  PLUGIN_CONFLICT: 'Rename the entry, or remove it from one of the two plugins.',
  MISSING_DEPENDENCY: 'Install the plugin, or remove the dependency.',
  CIRCULAR_DEPENDENCY: 'Remove one of the dependencies of the cycle.',
  SANDBOX_ERROR: 'Remove the permission, install bubblewrap, or run the plugin in containers.',
  INTEGRITY_MISMATCH: 'Install the plugin again: svc plugins install',
};

/** Returns what to change so that the fault disappears. */
export function remedyFor({ code, path, message }: Fault): string {
  const last = message.split('\n', 1)[0]!;
  for (const [pattern, remedy] of BY_MESSAGE) {
    const found = pattern.exec(last);
    if (found) return remedy.replace(/\$(\d)/g, (_, group: string) => found[Number(group)] ?? '');
  }
  const general = BY_CODE[code] ?? `Run svc explain ${code} for the causes.`;
  return path === '' && code === 'INVALID_MANIFEST' ? 'Correct the manifest as the message says.' : general;
}
