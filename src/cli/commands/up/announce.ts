import { formatDuration } from '../../../kit/time/duration.ts';
import {
  type BrokenPlugin,
  type SupervisorEvent,
  type SupervisorStatus,
  subjectName,
} from '../../../supervisor/control-protocol.ts';
import { nodeText } from '../../node-text.ts';
import type { Ui } from '../../ui.ts';

/** Prints a supervisor event as one line. */
export function announce(event: SupervisorEvent, ui: Ui): void {
  if (event.type === 'waiting') ui.noteOf(event, ({ reason }, { dim }) => `${dim('…')} waiting: ${reason}`);
  else if (event.type === 'ready')
    ui.noteOf(event, ({ service, process, url, tookMs }, { green, dim }) => {
      const took = dim(`ready after ${formatDuration(tookMs)}`);
      const name = process === undefined ? service : `${service} ${process}`;
      return `${green('✓')} ${name.padEnd(11)} ${url}  ${took}`;
    });
  else if (event.type === 'crashed')
    ui.warnOf(
      event,
      ({ reason, retryInMs, ...subject }) =>
        `${subjectName(subject)} crashed (${reason}); restarting in ${retryInMs}ms`,
    );
  else if (event.type === 'crash-loop') announceCrashLoop(event, ui);
  else
    ui.noteOf(
      event,
      ({ killed, ...subject }, { dim }) =>
        `${dim('■')} ${subjectName(subject)} ${killed ? 'killed' : 'stopped'}`,
    );
}

function announceCrashLoop(event: Extract<SupervisorEvent, { type: 'crash-loop' }>, ui: Ui): void {
  const { service, crashes, retryInMs, reason, lastLines } = event;
  ui.warn(
    `${subjectName(event)} crashed ${crashes} times in a row; restarting in ${formatDuration(retryInMs)}.`,
  );
  ui.warnOf(reason, (text) => `  ${text}`);
  for (const line of lastLines) ui.noteOf(line, (text, { dim }) => dim(`  | ${text}`));
  ui.note(`  To restart it now: svc restart ${service}`);
}

export interface Started {
  status: SupervisorStatus;
  firstStart: boolean;
  brokenPlugins: BrokenPlugin[];
}

/** Prints the profile, the data folder, broken plugins and, on the first start, the next steps. */
export function announceReady({ status, firstStart, brokenPlugins }: Started, ui: Ui): void {
  const { note } = ui;
  const gateway = status.services.find(({ name }) => name === 'gateway')?.url;
  ui.noteOf(
    status,
    ({ profile, dataDir, services }, { bold }) =>
      `${bold('svc is running')}${nodeText(services)} (profile ${profile}, data in ${dataDir}).`,
  );
  for (const broken of brokenPlugins)
    ui.warnOf(broken, ({ id, message }) => `Plugin ${id} failed to load: ${message}`);
  if (brokenPlugins.length > 0) note(`  Run svc plugins show ${brokenPlugins[0]?.id} for all problems.`);
  if (!firstStart || !gateway) return;
  note('');
  note("This first start created keys and the operator's credentials in that folder;");
  note('keep it private. Next steps:');
  note('  svc plugins create <name>                 create your own plugin');
  note('  svc webhooks provision <plugin> <event>   create its secret');
  note(`  ${`open ${gateway}/docs-all`.padEnd(40)}  browse the API`);
  note('  svc status, svc logs -f, svc down         check, follow and stop the platform');
}
