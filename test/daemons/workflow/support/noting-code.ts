import { tempDir } from '../../../support/daemon.ts';
import { writeCodePlugin } from './code.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { startProcess } from './process.ts';

/** A service in a process of its own with the plugin `code`; its functions note what they do in the ledger. */
export async function setUpNoting(source: (ledger: Ledger) => string, config: object = {}) {
  const ledger = await startLedger();
  const dataDir = await tempDir();
  await writeCodePlugin(
    dataDir,
    `const note = async (ctx, name, key) => {
      await ctx.fetch('${ledger.url}/' + name, { method: 'POST', headers: key ? { 'idempotency-key': key } : {} });
    };\n${source(ledger)}`,
    { permissions: { network: [new URL(ledger.url).host] } },
  );
  return { ledger, dataDir, start: () => startProcess(dataDir, config) };
}
