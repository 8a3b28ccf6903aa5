import { basename } from 'node:path';
import { formatBytes } from '../../../kit/bytes.ts';
import type { Diagnostic, Logger } from '../../../kit/logger.ts';
import type { Recovered } from '../committer/protocol.ts';
import { asideFiles } from './files.ts';

/** What a journal tells an operator. Reason codes: docs/observability.md. */
type Told = Pick<Diagnostic, 'event' | 'level' | 'reasonCode' | 'message' | 'outcome'> &
  Partial<Pick<Diagnostic, 'error' | 'evidence'>>;

function tell(logger: Logger, told: Told): void {
  logger.diagnostic({ domain: 'webhooks', ...told });
}

export function reportTakeOver({ units, aside, worn }: Recovered, folder: string, logger: Logger): void {
  if (aside)
    tell(logger, {
      event: 'journal.damaged',
      level: 'error',
      reasonCode: 'JOURNAL_DAMAGED',
      outcome: 'degraded',
      message: `A part of ${folder} is missing or cannot be read. What goes before it was moved into svc.db, what follows was not; the files are kept in ${aside}. Check the disk, unless svc.db was replaced by another copy`,
      evidence: { units, aside },
    });
  else if (worn.length > 0)
    tell(logger, {
      event: 'journal.worn',
      level: 'warn',
      reasonCode: 'JOURNAL_WORN',
      outcome: 'succeeded',
      message: `The disk has changed the head of ${worn.join(', ')}, which is there twice: nothing is missing. Check the disk`,
      evidence: { files: worn },
    });
  if (units > 0)
    logger.info('What the former gateway acknowledged last was moved into svc.db', { meta: { units } });
}

/** At each start until somebody has dealt with them: the first one may have died before it could say so. */
export function reportForeign(file: string, id: string, folder: string, logger: Logger): void {
  const files = asideFiles(folder).map((each) => basename(each));
  if (files.length === 0) return;
  tell(logger, {
    event: 'journal.foreign',
    level: 'error',
    reasonCode: 'JOURNAL_OF_ANOTHER_DATABASE',
    outcome: 'degraded',
    message: `${folder} has files that another svc.db wrote than the one beside it: ${files.join(', ')}. Deliveries in them may have been acknowledged and are not in ${file} (database ${id}). To have them, stop the platform, put the svc.db of that id in the place of this one, name the files <number>.log again and start; else remove them`,
    evidence: { folder, files, database: id },
  });
}

export function reportStuck(logger: Logger, folder: string, file: string, error: unknown): void {
  tell(logger, {
    event: 'journal.stuck',
    level: 'error',
    reasonCode: 'INBOX_NOT_FILED',
    outcome: 'degraded',
    message: `What the gateway acknowledged cannot be moved from ${folder} into ${file}; it is kept, and tried again each second`,
    error,
  });
}

export function reportMoving(logger: Logger, folder: string, file: string): void {
  tell(logger, {
    event: 'journal.moving',
    level: 'info',
    reasonCode: 'INBOX_FILED_AGAIN',
    outcome: 'succeeded',
    message: `What the gateway acknowledged is moved from ${folder} into ${file} again`,
  });
}

export function reportLeft(logger: Logger, folder: string, file: string, bytes: number): void {
  tell(logger, {
    event: 'journal.left',
    level: 'warn',
    reasonCode: 'INBOX_LEFT_FOR_START',
    outcome: 'degraded',
    message: `${formatBytes(bytes)} of what the gateway acknowledged are left in ${folder}: the next start moves them into ${file}`,
    evidence: { bytes },
  });
}

export function reportGone(logger: Logger, journal: string, file: string): void {
  tell(logger, {
    event: 'journal.gone',
    level: 'warn',
    reasonCode: 'JOURNAL_FILE_GONE',
    outcome: 'degraded',
    message: `${journal} was removed or replaced while the gateway had it open. All that it held was moved into ${file}, and the gateway goes on with another: leave its files alone while it runs`,
    evidence: { file: journal },
  });
}
