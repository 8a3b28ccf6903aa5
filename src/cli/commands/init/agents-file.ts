/** Returns the text of `AGENTS.md`, which tells coding agents how to work in a project. */
export function agentsText(): string {
  return TEXT;
}

const TEXT = `# Working in this project

This folder is a project of svc, a self-hosted automation platform. \`svc.config.json\` is the configuration, and each
folder in \`plugins/\` is a plugin: a manifest (\`svc.plugin.json\`) and JavaScript or TypeScript.

## Write a plugin

1. \`svc plugins create <id> --template rest\` (or webhook, workflow, command) creates \`plugins/<id>\` with a test.
2. Edit the manifest. A handler is \`<file>#<export>\`. Its JSON Schema is named by \`$schema\`.
3. \`svc plugins validate plugins/<id> --json\` lists all faults in \`error.details.faults\`. Each has \`file\`, \`line\`,
   \`column\`, \`path\`, \`code\` and \`remedy\`. No running platform is needed.
4. \`svc plugins test plugins/<id> --json\` runs the tests in \`plugins/<id>/test\` and lists failures in the same form.
5. Repeat until both print \`"ok": true\`.

## Commands

- \`svc up -d\`, \`svc status\`, \`svc down\`: start, check and stop the platform
- \`svc plugins dev plugins/<id>\`: reload the plugin on each change; runs until interrupted
- \`svc config validate\` and \`svc workflows validate workflows/<file>.yaml\`: check other files
- \`svc logs --plugin <id> --json\`: logs of a plugin
- \`svc explain <CODE>\`: cause and remedy of an error code
- \`svc openapi --client ts\`: typed client of all routes, with the platform running
- \`svc commands --json\`: all commands and flags; with \`--json\` a command prints one JSON document

## Rules

- Handlers import only \`svc-platform/sdk\`, files and dependencies of the plugin. Tests import \`svc-platform/testing\`.
- A plugin can do only what \`permissions\` in its manifest lists. Add the narrowest permission that works.
- Code of a workflow is replayed. Put every side effect, time and random value into \`ctx.step\`.
- Webhooks can arrive twice. Set \`idempotencyKey\`, and make handlers safe to repeat.
- Do not read, print or commit \`.env\` and \`.svc/\`: they hold secrets. Do not edit \`vendor/\`.

## Documentation

\`node_modules/svc-platform/llms.txt\` in the folder of a plugin is the index, \`llms-full.txt\` beside it has all pages.
A running platform serves both: http://127.0.0.1:4000/llms.txt.
`;
