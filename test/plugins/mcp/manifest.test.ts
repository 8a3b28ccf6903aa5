import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadPlugins, toolDigest } from '../../../src/plugins/index.ts';
import { tempDir } from '../../support/daemon.ts';

const DEPTH = 50_000;

test.each([
  [
    'a reference with invalid encoding',
    '{"$ref":"#/$defs/%"}',
    'mcpServer.tools[0].inputSchema',
    /has no target/,
  ],
  [
    'a schema of great depth',
    `${'{"not":'.repeat(DEPTH)}{}${'}'.repeat(DEPTH)}`,
    '',
    /^The manifest cannot be checked: /,
  ],
])(
  'one manifest with %s does not prevent other plugins from loading',
  async (_name, schema, path, message) => {
    const projectDir = await tempDir();
    const write = async (id: string, more = '') => {
      const folder = join(projectDir, 'plugins', id);
      await mkdir(folder, { recursive: true });
      const manifest = `{"schema":"svc.plugin/3","id":"${id}","version":"1.0.0"${more}}`;
      await writeFile(join(folder, 'svc.plugin.json'), manifest);
    };
    const tool = `{"name":"a","inputSchema":{"type":"object","properties":{"a":${schema}}}}`;
    const digest = DEPTH > schema.length ? toolDigest(JSON.parse(tool)) : `sha256-${'a'.repeat(43)}`;
    const tools = `[${tool.slice(0, -1)},"digest":"${digest}"}]`;
    await write('bad', `,"mcpServer":{"url":"https://mcp.example/","tools":${tools}}`);
    await write('good');
    const registry = await loadPlugins({ projectDir, patterns: ['./plugins/*'] });
    expect(registry.plugins.map(({ id }) => id)).toEqual(['good']);
    expect(registry.broken).toEqual([
      expect.objectContaining({
        id: 'bad',
        faults: [{ code: 'INVALID_MANIFEST', path, message: expect.stringMatching(message) }],
      }),
    ]);
  },
);
