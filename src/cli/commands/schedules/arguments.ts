import { z } from 'zod';

export const ScheduleArg = z.string().min(1).describe('schedule id, see svc schedules list');
