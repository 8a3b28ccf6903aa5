import { tempDir } from '../../../support/daemon.ts';
import { LEDGER_CONFIG, type Ledger, startLedger } from './ledger.ts';
import { type DaemonProcess, startProcess } from './process.ts';
import { cel } from './workflow.ts';

/** A ledger that outlives the service that writes to it, and a folder on which the service can be started again. */
export async function setUpLedger(config: object = LEDGER_CONFIG) {
  const dataDir = await tempDir();
  return {
    dataDir,
    ledger: await startLedger(),
    start: (before?: DaemonProcess) => startProcess(dataDir, config, before),
  };
}

/** A step that posts to the ledger. */
export const callLedger = (ledger: Ledger, id: string, more: object = {}) => ({
  id,
  uses: 'http',
  with: { method: 'POST', url: `${ledger.url}/${id}/${cel('run.id')}` },
  ...more,
});
