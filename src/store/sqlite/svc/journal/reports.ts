import { basename } from 'node:path';
import { formatBytes } from '../../../../kit/data/bytes.ts';
import type { Diagnostic, Logger } from '../../../../kit/telemetry/logger.ts';
import type { Recovered } from '../committer/protocol.ts';
import { foreignFiles } from './files.ts';

/** A diagnostic about the journal. docs/observability.md lists the reason codes. */
type Report = Pick<Diagnostic, 'event' | 'level' | 'reasonCode' | 'message' | 'outcome'> &
  Partial<Pick<Diagnostic, 'error' | 'evidence'>>;

function report(logger: Logger, diagnostic: Report): void {
  logger.diagnostic({ domain: 'webhook', ...diagnostic });
}

export function reportRecovery(
  { units, quarantine, damagedHeaders }: Recovered,
  folder: string,
  logger: Logger,
): void {
  if (quarantine)
    report(logger, {
      event: 'journal.damaged',
      level: 'error',
      reasonCode: 'JOURNAL_DAMAGED',
      outcome: 'degraded',
      message: `Part of ${folder} is missing or unreadable. Deliveries before that part were moved into svc.db, later ones were not; the files are kept in ${quarantine}. Check the disk, unless svc.db was replaced by another copy`,
      evidence: { units, aside: quarantine },
    });
  else if (damagedHeaders.length > 0)
    report(logger, {
      event: 'journal.worn',
      level: 'warn',
      reasonCode: 'JOURNAL_WORN',
      outcome: 'succeeded',
      message: `A disk error damaged one of the two header copies of ${damagedHeaders.join(', ')}. No delivery is lost. Check the disk`,
      evidence: { files: damagedHeaders },
    });
  if (units > 0)
    logger.info('Deliveries that the previous gateway acknowledged were moved into svc.db', {
      meta: { units },
    });
}

/** Reports the files of another database at each start, because an operator must decide what to do with the files. */
export function reportForeign(file: string, id: string, folder: string, logger: Logger): void {
  const files = foreignFiles(folder).map((each) => basename(each));
  if (files.length === 0) return;
  report(logger, {
    event: 'journal.foreign',
    level: 'error',
    reasonCode: 'JOURNAL_OF_ANOTHER_DATABASE',
    outcome: 'degraded',
    message: `${folder} has files that belong to another svc.db: ${files.join(', ')}. They may hold acknowledged deliveries, which are not in ${file} (database ${id}). To recover them, stop the platform, replace this svc.db by the one with the id in the file names, rename the files to <number>.log and start; otherwise remove them`,
    evidence: { folder, files, database: id },
  });
}

export function reportStuck(logger: Logger, folder: string, file: string, error: unknown): void {
  report(logger, {
    event: 'journal.stuck',
    level: 'error',
    reasonCode: 'INBOX_NOT_FILED',
    outcome: 'degraded',
    message: `Acknowledged deliveries cannot be moved from ${folder} into ${file}. They are kept, and the move is retried every second`,
    error,
  });
}

export function reportMoving(logger: Logger, folder: string, file: string): void {
  report(logger, {
    event: 'journal.moving',
    level: 'info',
    reasonCode: 'INBOX_FILED_AGAIN',
    outcome: 'succeeded',
    message: `Acknowledged deliveries are moved from ${folder} into ${file} again`,
  });
}

export function reportLeft(logger: Logger, folder: string, file: string, bytes: number): void {
  report(logger, {
    event: 'journal.left',
    level: 'warn',
    reasonCode: 'INBOX_LEFT_FOR_START',
    outcome: 'degraded',
    message: `${formatBytes(bytes)} of acknowledged deliveries are still in ${folder}. The next start moves them into ${file}`,
    evidence: { bytes },
  });
}

export function reportGone(logger: Logger, journal: string, file: string): void {
  report(logger, {
    event: 'journal.gone',
    level: 'warn',
    reasonCode: 'JOURNAL_FILE_GONE',
    outcome: 'degraded',
    message: `${journal} was removed or replaced while the gateway had it open. Its deliveries are in ${file}, and the gateway continues with another file. Do not touch its files while it runs`,
    evidence: { file: journal },
  });
}
