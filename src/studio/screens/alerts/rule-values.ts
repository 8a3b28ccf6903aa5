import type { AlertKind, AlertMatchField } from '../../../contracts/alert-kinds.ts';
import type { AlertRule } from '../../../contracts/alert-records.ts';
import { KINDS, THRESHOLDS } from './kinds.ts';

/** Values of the form of a rule, as they are typed. */
export interface RuleValues {
  name: string;
  kind: AlertKind;
  description: string;
  match: Partial<Record<AlertMatchField, string>>;
  threshold: Partial<Record<keyof typeof THRESHOLDS, string>>;
  certificates: string;
  channels: readonly string[];
  severity: string;
  groupBy: string;
  groupWaitSeconds: string;
  repeatHours: string;
  sendsResolved: boolean;
  isEnabled: boolean;
  /** Whether a new rule belongs to the operators. */
  isForAll: boolean;
}

export const NEW_RULE: RuleValues = {
  ...{ name: '', kind: 'delivery.failed', description: '', match: {}, threshold: {}, certificates: '' },
  ...{ channels: [], severity: 'warning', groupBy: '', groupWaitSeconds: '30', repeatHours: '4' },
  ...{ sendsResolved: true, isEnabled: true, isForAll: false },
};

const SECOND_MS = 1000;
const HOUR_MS = 3600_000;

export function valuesOf(rule: AlertRule): RuleValues {
  const threshold = Object.fromEntries(
    Object.entries(THRESHOLDS).flatMap(([name, { factor }]) => {
      const value = rule.threshold[name as keyof typeof THRESHOLDS];
      return value === undefined ? [] : [[name, String(value / factor)]];
    }),
  );
  return {
    name: rule.name,
    kind: rule.kind,
    description: rule.description ?? '',
    match: { ...rule.match } as RuleValues['match'],
    threshold,
    certificates: (rule.threshold.certificates ?? []).join(', '),
    channels: rule.channels,
    severity: rule.severity,
    groupBy: rule.groupBy.join(', '),
    groupWaitSeconds: String(rule.groupWaitMs / SECOND_MS),
    repeatHours: rule.repeatIntervalMs === null ? '' : String(rule.repeatIntervalMs / HOUR_MS),
    sendsResolved: rule.sendResolved,
    isEnabled: rule.enabled,
    isForAll: false,
  };
}

export const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '');

/** Returns the settings of a rule, without its name and kind. Fields that its kind does not know are left out. */
export function settingsOf(values: RuleValues) {
  const { match, threshold } = KINDS[values.kind];
  const matches = match.flatMap((name) => (values.match[name] ? [[name, values.match[name]]] : []));
  const limits = threshold.flatMap((name): Array<[string, unknown]> => {
    if (name === 'certificates') return [[name, wordsOf(values.certificates)]];
    const text = values.threshold[name];
    return text ? [[name, Math.round(Number(text) * THRESHOLDS[name].factor)]] : [];
  });
  return {
    description: values.description === '' ? null : values.description,
    match: Object.fromEntries(matches),
    threshold: Object.fromEntries(limits),
    channels: [...values.channels],
    severity: values.severity,
    groupBy: wordsOf(values.groupBy),
    groupWaitMs: Math.round(Number(values.groupWaitSeconds) * SECOND_MS),
    repeatIntervalMs: values.repeatHours === '' ? null : Math.round(Number(values.repeatHours) * HOUR_MS),
    sendResolved: values.sendsResolved,
    enabled: values.isEnabled,
  };
}
