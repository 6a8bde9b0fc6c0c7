"""The calendar, as facts: what fires when under rule C (R5). Data only; test_due_times.py holds due_times to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calendar:
    """The first instants strictly after a start."""

    name: str
    expression: str
    zone: str
    after: str
    want: str


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest instant at or before a moment."""

    name: str
    expression: str
    zone: str
    at: str
    want: str


# fmt: off

GAPS = [
    Calendar("a missing wall time moves to the end of the gap", "30 2 * * *", "America/New_York",
             "2026-03-07T12:00", "2026-03-08T07:00 2026-03-09T06:30 2026-03-10T06:30"),
    Calendar("moved times that meet a genuine one are one occurrence", "0,30 2,3 * * *", "America/New_York",
             "2026-03-07T12:00", "2026-03-08T07:00 2026-03-08T07:30 2026-03-09T06:00 2026-03-09T06:30"),
    Calendar("every hour: nothing is made up for the missing one", "0 * * * *", "America/New_York",
             "2026-03-08T05:30", "2026-03-08T06:00 2026-03-08T07:00 2026-03-08T08:00 2026-03-08T09:00"),
    Calendar("the only slot of a week lies in the gap", "30 2 * * 0", "Europe/Berlin",
             "2026-03-28T12:00", "2026-03-29T01:00 2026-04-05T00:30 2026-04-12T00:30"),
    Calendar("no slot in the gap: only the spacing shrinks", "20 */4 * * *", "America/Los_Angeles",
             "2023-03-12T06:00", "2023-03-12T08:20 2023-03-12T11:20 2023-03-12T15:20 2023-03-12T19:20 2023-03-12T23:20"),
    Calendar("midnight itself is missing in Cairo", "0 0 * * *", "Africa/Cairo",
             "2026-04-22T12:00", "2026-04-22T22:00 2026-04-23T22:00 2026-04-24T21:00 2026-04-25T21:00"),
    Calendar("midnight itself is missing in Beirut", "0 0 * * *", "Asia/Beirut",
             "2026-03-27T12:00", "2026-03-27T22:00 2026-03-28T22:00 2026-03-29T21:00"),
    Calendar("even hours across a midnight gap keep the rest of the day", "0 */2 * * *", "Africa/Cairo",
             "2026-04-23T18:00", "2026-04-23T20:00 2026-04-23T22:00 2026-04-23T23:00 2026-04-24T01:00 2026-04-24T03:00"),
    Calendar("a yearly date whose slot is missing still fires that year", "30 0 24 4 *", "Africa/Cairo",
             "2026-04-01T00:00", "2026-04-23T22:00 2027-04-23T22:30"),
    Calendar("K-006: the Sunday that has 23 hours", "0 12 * * 0", "Europe/Berlin",
             "2022-03-26T11:00", "2022-03-27T10:00 2022-04-03T10:00"),
    Calendar("K-006: the midnight after a day of 23 hours", "0 0 * * *", "America/Chicago",
             "2021-03-13T12:00", "2021-03-14T06:00 2021-03-15T05:00"),
    Calendar("K-006: a jump from winter into a summer month starts at local midnight", "* * * */3 *", "America/New_York",
             "2015-02-15T05:00", "2015-04-01T04:00 2015-04-01T04:01 2015-04-01T04:02"),
    Calendar("only the missing one of several slots moves", "30 2-23/4 * * *", "Australia/Sydney",
             "2019-10-05T14:00", "2019-10-05T16:00 2019-10-05T19:30 2019-10-05T23:30 2019-10-06T03:30"),
    Calendar("morning slots keep their wall time on the day of the change", "0 7,9 * * *", "America/Los_Angeles",
             "2020-03-07T14:00", "2020-03-07T15:00 2020-03-07T17:00 2020-03-08T14:00 2020-03-08T16:00 2020-03-09T14:00"),
]

FOLDS = [
    Calendar("a repeated wall time fires in both passes", "30 1 * * *", "America/New_York",
             "2026-10-31T12:00", "2026-11-01T05:30 2026-11-01T06:30 2026-11-02T06:30 2026-11-03T06:30"),
    Calendar("every half hour of real time goes on through the repeated hour", "*/30 * * * *", "America/New_York",
             "2026-11-01T04:45", "2026-11-01T05:00 2026-11-01T05:30 2026-11-01T06:00 2026-11-01T06:30 "
             "2026-11-01T07:00 2026-11-01T07:30"),
    Calendar("hourly through the repeated hour in London", "0 * * * *", "Europe/London",
             "2026-10-24T23:30", "2026-10-25T00:00 2026-10-25T01:00 2026-10-25T02:00 2026-10-25T03:00"),
    Calendar("one date of the year, both passes", "30 2 25 10 *", "Europe/Berlin",
             "2026-10-20T00:00", "2026-10-25T00:30 2026-10-25T01:30 2027-10-25T00:30"),
    Calendar("a month's every night, both passes on one of them", "30 1 * 11 *", "America/New_York",
             "2026-10-31T00:00", "2026-11-01T05:30 2026-11-01T06:30 2026-11-02T06:30"),
    Calendar("midnight twice in Havana", "0 0 * * *", "America/Havana",
             "2025-11-01T12:00", "2025-11-02T04:00 2025-11-02T05:00 2025-11-03T05:00"),
    Calendar("the repeated hour before midnight stays on its date, Cairo", "30 23 * * *", "Africa/Cairo",
             "2026-10-28T12:00", "2026-10-28T20:30 2026-10-29T20:30 2026-10-29T21:30"),
    Calendar("the repeated hour before midnight stays on its date, Beirut", "30 23 * * *", "Asia/Beirut",
             "2026-10-23T12:00", "2026-10-23T20:30 2026-10-24T20:30 2026-10-24T21:30"),
    Calendar("the repeated half hour is still Saturday in Santiago", "30 23 * * 6", "America/Santiago",
             "2026-04-03T12:00", "2026-04-05T02:30 2026-04-05T03:30 2026-04-12T03:30"),
    Calendar("two hours are repeated at Troll", "0 1-3 * * *", "Antarctica/Troll",
             "2026-10-24T12:00", "2026-10-24T23:00 2026-10-25T00:00 2026-10-25T01:00 2026-10-25T02:00 "
             "2026-10-25T03:00 2026-10-26T01:00"),
    Calendar("an evening slot after the change keeps its wall time", "0 20 * * *", "Europe/Paris",
             "2022-10-29T22:00", "2022-10-30T19:00 2022-10-31T19:00 2022-11-01T19:00"),
    Calendar("an afternoon slot moves by an hour of UTC", "0 16 * * *", "US/Eastern",
             "2017-11-01T04:00", "2017-11-01T20:00 2017-11-02T20:00 2017-11-03T20:00 2017-11-04T20:00 "
             "2017-11-05T21:00 2017-11-06T21:00"),
    Calendar("a day window over the change has no stray slot", "0,15,30,45 6-22 * * *", "Europe/Brussels",
             "2023-10-28T20:40", "2023-10-28T20:45 2023-10-29T05:00 2023-10-29T05:15 2023-10-29T05:30"),
    Calendar("the end of the fold happens once", "0 3 * * *", "Europe/Berlin",
             "2026-10-24T12:00", "2026-10-25T02:00 2026-10-26T02:00"),
]

ODD_OFFSETS = [
    Calendar("a gap of half an hour swallows a quarter past", "15 * * * *", "Australia/Lord_Howe",
             "2026-10-03T13:00", "2026-10-03T13:45 2026-10-03T14:45 2026-10-03T16:15 2026-10-03T17:15 2026-10-03T18:15"),
    Calendar("the first minute of a gap of half an hour moves", "0 2 * * *", "Australia/Lord_Howe",
             "2026-10-02T12:00", "2026-10-02T15:30 2026-10-03T15:30 2026-10-04T15:00"),
    Calendar("K-002: every twenty minutes through a repeated half hour", "*/20 * * * *", "Australia/Lord_Howe",
             "2026-04-04T14:00", "2026-04-04T14:20 2026-04-04T14:40 2026-04-04T15:10 2026-04-04T15:30 "
             "2026-04-04T15:50 2026-04-04T16:10 2026-04-04T16:30 2026-04-04T16:50"),
    Calendar("the same wall time half an hour apart", "45 1 * * *", "Australia/Lord_Howe",
             "2026-04-03T12:00", "2026-04-03T14:45 2026-04-04T14:45 2026-04-04T15:15 2026-04-05T15:15"),
    Calendar("quarters in a zone with three quarters of an hour, both passes", "*/15 2 * * *", "Pacific/Chatham",
             "2026-04-04T12:00", "2026-04-04T12:15 2026-04-04T12:30 2026-04-04T12:45 2026-04-04T13:00 "
             "2026-04-04T14:00 2026-04-05T13:15"),
    Calendar("an offset of five and a half hours", "30 9 * * *", "Asia/Kolkata",
             "2026-01-01T00:00", "2026-01-01T04:00 2026-01-02T04:00"),
    Calendar("an offset of five and three quarters", "0 0 * * *", "Asia/Kathmandu",
             "2026-01-01T00:00", "2026-01-01T18:15 2026-01-02T18:15"),
    Calendar("month starts on both sides of a change", "0 0 1 * *", "America/St_Johns",
             "2026-10-01T12:00", "2026-11-01T02:30 2026-12-01T03:30"),
    Calendar("Friday to Monday over a change", "0 9 * * 1-5", "Australia/Adelaide",
             "2026-04-02T12:00", "2026-04-02T22:30 2026-04-05T23:30 2026-04-06T23:30"),
    Calendar("nine and a half hours behind", "30 23 * * *", "Pacific/Marquesas",
             "2026-06-01T00:00", "2026-06-01T09:00 2026-06-02T09:00"),
]

CHANGED_OFFSETS = [
    Calendar("two in the morning in Shanghai is the evening before in UTC", "0 2 * * *", "Asia/Shanghai",
             "2026-08-27T10:00", "2026-08-27T18:00 2026-08-28T18:00"),
    Calendar("an offset that grew by half an hour at midnight", "45 23 * * *", "Asia/Pyongyang",
             "2018-05-03T12:00", "2018-05-03T15:15 2018-05-04T15:00 2018-05-05T14:45"),
    Calendar("an offset that shrank by half an hour at midnight", "45 23 * * *", "Asia/Pyongyang",
             "2015-08-13T12:00", "2015-08-13T14:45 2015-08-14T14:45 2015-08-14T15:15 2015-08-15T15:15"),
    Calendar("Caracas goes back half an hour for good", "45 2 * * *", "America/Caracas",
             "2007-12-08T12:00", "2007-12-09T06:45 2007-12-09T07:15 2007-12-10T07:15"),
    Calendar("Almaty leaves an offset for good", "0 9 * * *", "Asia/Almaty",
             "2024-02-28T12:00", "2024-02-29T03:00 2024-03-01T04:00 2024-03-02T04:00"),
    Calendar("Asuncion goes to summer time", "0 9 * * *", "America/Asuncion",
             "2024-10-05T00:00", "2024-10-05T13:00 2024-10-06T12:00 2024-10-07T12:00"),
    Calendar("and stays there", "0 9 * * *", "America/Asuncion",
             "2025-03-21T13:00", "2025-03-22T12:00 2025-03-23T12:00 2025-03-24T12:00"),
    Calendar("Amman stays on summer time", "0 9 * * *", "Asia/Amman",
             "2022-10-27T12:00", "2022-10-28T06:00 2022-10-29T06:00 2022-10-30T06:00"),
    Calendar("Volgograd goes back in winter", "30 1 * * *", "Europe/Volgograd",
             "2020-12-25T12:00", "2020-12-25T21:30 2020-12-26T21:30 2020-12-26T22:30 2020-12-27T22:30"),
    Calendar("Mexico City without summer time", "0 9 * * *", "America/Mexico_City",
             "2023-04-01T00:00", "2023-04-01T15:00 2023-04-02T15:00 2023-04-03T15:00"),
    Calendar("Tehran without summer time", "30 0 * * *", "Asia/Tehran",
             "2023-03-20T12:00", "2023-03-20T21:00 2023-03-21T21:00 2023-03-22T21:00"),
    Calendar("Casablanca goes back for Ramadan", "30 2 * * *", "Africa/Casablanca",
             "2025-02-21T12:00", "2025-02-22T01:30 2025-02-23T01:30 2025-02-23T02:30 2025-02-24T02:30"),
    Calendar("Casablanca goes forward after Ramadan", "30 2 * * *", "Africa/Casablanca",
             "2025-04-04T12:00", "2025-04-05T02:30 2025-04-06T02:00 2025-04-07T01:30"),
]

NEWEST_RULES = [
    Calendar("Vancouver stays on summer time, as the newest rules say", "0 9 * * *", "America/Vancouver",
             "2026-11-01T12:00", "2026-11-01T16:00 2026-11-02T16:00"),
    Calendar("Casablanca on its newest rules", "0 9 * * *", "Africa/Casablanca",
             "2026-09-20T12:00", "2026-09-21T09:00 2026-09-22T09:00"),
    Calendar("Havana on its newest rules", "0 0 * * *", "America/Havana",
             "2026-10-31T12:00", "2026-11-01T04:00 2026-11-02T04:00"),
]

DATE_LINE = [
    Calendar("a whole day is missing in Samoa", "0 12 * * *", "Pacific/Apia",
             "2011-12-28T12:00", "2011-12-28T22:00 2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00"),
    Calendar("every hour over the missing day has no hole and no burst", "0 * * * *", "Pacific/Apia",
             "2011-12-30T08:30", "2011-12-30T09:00 2011-12-30T10:00 2011-12-30T11:00"),
    Calendar("a yearly date that never was", "0 0 30 12 *", "Pacific/Apia",
             "2011-12-01T00:00", "2011-12-30T10:00 2012-12-29T10:00"),
    Calendar("the earliest New Year", "0 0 1 1 *", "Pacific/Kiritimati",
             "2025-06-01T00:00", "2025-12-31T10:00"),
    Calendar("the latest New Year", "0 0 1 1 *", "Pacific/Pago_Pago",
             "2025-06-01T00:00", "2026-01-01T11:00"),
    Calendar("twelve hours behind", "0 0 * * *", "Etc/GMT+12",
             "2026-01-01T00:00", "2026-01-01T12:00 2026-01-02T12:00"),
    Calendar("the day after the missing one exists in Tokelau", "0 0 31 12 *", "Pacific/Fakaofo",
             "2011-12-01T00:00", "2011-12-30T11:00 2012-12-30T11:00"),
]

MONTH_ENDS = [
    Calendar("K-009: from a leap day to the next", "0 0 29 2 *", "UTC",
             "2024-02-29T00:00", "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00"),
    Calendar("K-009: no leap day in 2100", "0 0 29 2 *", "UTC",
             "2096-03-01T00:00", "2104-02-29T00:00 2108-02-29T00:00"),
    Calendar("K-009: a leap day in 2000", "0 0 29 2 *", "UTC",
             "1999-06-01T00:00", "2000-02-29T00:00"),
    Calendar("K-009: February has no 30th", "0 0 30 * *", "UTC",
             "2026-01-30T00:00", "2026-03-30T00:00 2026-04-30T00:00 2026-05-30T00:00"),
    Calendar("K-009: the first of March is no 29th", "0 0 29 * *", "UTC",
             "2026-01-29T00:00", "2026-03-29T00:00 2026-04-29T00:00"),
    Calendar("K-009: one month of the list has a 31st", "0 0 31 4,6,7 *", "UTC",
             "2026-01-01T00:00", "2026-07-31T00:00 2027-07-31T00:00"),
    Calendar("K-009: a step starts again on the first", "0 0 */5 * *", "UTC",
             "2022-02-20T00:00", "2022-02-21T00:00 2022-02-26T00:00 2022-03-01T00:00 2022-03-06T00:00 2022-03-11T00:00"),
    Calendar("the last minute of the year", "59 23 31 12 *", "Asia/Tokyo",
             "2026-01-01T00:00", "2026-12-31T14:59 2027-12-31T14:59"),
    Calendar("month starts over a southern change", "0 12 1 * *", "Pacific/Auckland",
             "2026-03-15T00:00", "2026-03-31T23:00 2026-05-01T00:00 2026-06-01T00:00"),
]

DAY_FIELDS = [
    Calendar("both day fields restricted: either one", "0 0 13 * 5", "UTC",
             "2026-02-01T00:00", "2026-02-06T00:00 2026-02-13T00:00 2026-02-20T00:00 2026-02-27T00:00 "
             "2026-03-06T00:00 2026-03-13T00:00"),
    Calendar("a starred step takes part in the either-or", "0 0 */2 * 1", "UTC",
             "2026-01-01T00:00", "2026-01-03T00:00 2026-01-05T00:00 2026-01-07T00:00 2026-01-09T00:00 2026-01-11T00:00"),
    Calendar("a starred step of weekdays does too", "0 0 1 * */2", "UTC",
             "2026-01-01T00:00", "2026-01-03T00:00 2026-01-04T00:00 2026-01-06T00:00 2026-01-08T00:00 2026-01-10T00:00"),
    Calendar("a full range of days is a restriction", "0 0 1-31 * 1", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-03T00:00 2026-01-04T00:00"),
    Calendar("a full range of days beside a starred step", "0 0 1-31 * */2", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-03T00:00 2026-01-04T00:00 2026-01-05T00:00"),
    Calendar("a bare star leaves the weekday alone", "0 0 * * 1", "UTC",
             "2026-01-01T00:00", "2026-01-05T00:00 2026-01-12T00:00 2026-01-19T00:00"),
    Calendar("a full range of weekdays is a restriction", "0 0 1 * 0-7", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-03T00:00 2026-01-04T00:00"),
    Calendar("an impossible day beside weekdays that exist", "0 0 31 4 */2", "UTC",
             "2026-01-01T00:00", "2026-04-02T00:00 2026-04-04T00:00 2026-04-05T00:00 2026-04-07T00:00"),
    Calendar("an impossible date beside a weekday", "0 0 31 2 1", "UTC",
             "2026-01-01T00:00", "2026-02-02T00:00 2026-02-09T00:00 2026-02-16T00:00 2026-02-23T00:00"),
]

FIELDS = [
    Calendar("seven is Sunday", "0 0 * * 7", "UTC",
             "2026-01-01T00:00", "2026-01-04T00:00 2026-01-11T00:00 2026-01-18T00:00"),
    Calendar("names in any case", "0 0 * * SUN", "UTC",
             "2026-01-01T00:00", "2026-01-04T00:00 2026-01-11T00:00 2026-01-18T00:00"),
    Calendar("a range that ends in seven", "0 0 * * 5-7", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-03T00:00 2026-01-04T00:00 2026-01-09T00:00"),
    Calendar("a list that begins with seven", "0 0 * * 7,1", "UTC",
             "2026-01-01T00:00", "2026-01-04T00:00 2026-01-05T00:00 2026-01-11T00:00 2026-01-12T00:00"),
    Calendar("a range from a name to a number", "0 0 * * Mon-5", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-05T00:00 2026-01-06T00:00 2026-01-07T00:00"),
    Calendar("a range of one day", "0 0 1-1 * *", "UTC",
             "2026-01-01T00:00", "2026-02-01T00:00 2026-03-01T00:00 2026-04-01T00:00"),
    Calendar("a range of one minute", "5-5 * * * *", "UTC",
             "2026-01-01T00:00", "2026-01-01T00:05 2026-01-01T01:05 2026-01-01T02:05"),
    Calendar("a range of one weekday, written seven", "0 0 * * 7-7", "UTC",
             "2026-01-01T00:00", "2026-01-04T00:00 2026-01-11T00:00 2026-01-18T00:00"),
    Calendar("a range of one month", "0 0 1 6-6 *", "UTC",
             "2026-01-01T00:00", "2026-06-01T00:00 2027-06-01T00:00"),
    Calendar("a weekday with a step runs to seven", "0 0 * * 5/2", "UTC",
             "2026-01-01T00:00", "2026-01-02T00:00 2026-01-04T00:00 2026-01-09T00:00 2026-01-11T00:00"),
    Calendar("a stepped range keeps its end", "10-50/15 * * * *", "UTC",
             "2026-01-01T00:00", "2026-01-01T00:10 2026-01-01T00:25 2026-01-01T00:40 2026-01-01T01:10"),
    Calendar("a step that does not divide the day", "0 */5 * * *", "UTC",
             "2026-01-01T14:00", "2026-01-01T15:00 2026-01-01T20:00 2026-01-02T00:00 2026-01-02T05:00"),
    Calendar("a step beyond the field", "*/100 * * * *", "UTC",
             "2026-01-01T00:30", "2026-01-01T01:00 2026-01-01T02:00"),
    Calendar("a stepped range over the hour", "3-59/10 * * * *", "UTC",
             "2026-01-01T00:50", "2026-01-01T00:53 2026-01-01T01:03 2026-01-01T01:13"),
    Calendar("a minute already begun is over", "* * * * *", "UTC",
             "2026-01-01T00:00:30", "2026-01-01T00:01 2026-01-01T00:02"),
    Calendar("leading zeros are decimal", "05 007 * * *", "UTC",
             "2026-01-01T00:00", "2026-01-01T07:05 2026-01-02T07:05"),
    Calendar("tabs and several blanks", "0\t0  * *   1", "UTC",
             "2026-01-01T00:00", "2026-01-05T00:00 2026-01-12T00:00"),
]

FAR_FUTURE = [
    Calendar("the end of 32-bit time", "14 3 19 1 *", "UTC",
             "2037-06-01T00:00", "2038-01-19T03:14"),
    Calendar("a gap far in the future", "30 2 * 3 *", "America/New_York",
             "2087-03-08T12:00", "2087-03-09T07:00 2087-03-10T06:30 2087-03-11T06:30"),
    Calendar("a fold far in the future", "30 1 * 11 *", "America/New_York",
             "2150-10-31T12:00", "2150-11-01T05:30 2150-11-01T06:30 2150-11-02T06:30"),
]
# fmt: on

CALENDAR = [
    *GAPS,
    *FOLDS,
    *ODD_OFFSETS,
    *CHANGED_OFFSETS,
    *NEWEST_RULES,
    *DATE_LINE,
    *MONTH_ENDS,
    *DAY_FIELDS,
    *FIELDS,
    *FAR_FUTURE,
]

# fmt: off
LATEST = [
    Latest("inside the second pass, before the repeated slot", "30 1 * 11 *", "America/New_York",
           "2026-11-01T06:00", "2026-11-01T05:30"),
    Latest("the same in a zone of half hours", "30 1 * 11 *", "America/St_Johns",
           "2026-11-01T04:35", "2026-11-01T04:00"),
    Latest("the newest is a moved slot", "30 2 * * *", "America/New_York",
           "2026-03-08T07:30", "2026-03-08T07:00"),
    Latest("the moved slot itself counts", "30 2 * * *", "America/New_York",
           "2026-03-08T07:00", "2026-03-08T07:00"),
    Latest("never one in the future", "0 1 * * *", "America/New_York",
           "2024-11-03T05:30", "2024-11-03T05:00"),
    Latest("the second pass of a fold of two hours", "15 0,1 * * *", "Antarctica/Troll",
           "2026-10-25T02:00", "2026-10-25T01:15"),
    Latest("back over a month without a 31st", "0 0 31 * *", "UTC",
           "2026-05-15T00:00", "2026-03-31T00:00"),
    Latest("back to the last leap day", "0 0 29 2 *", "UTC",
           "2027-01-01T00:00", "2024-02-29T00:00"),
    Latest("from Monday back to Friday", "30 6-16/4 * * 1-5", "UTC",
           "2026-01-05T05:00", "2026-01-02T14:30"),
    Latest("back to the slot of a day that never was", "0 12 * * *", "Pacific/Apia",
           "2011-12-30T12:00", "2011-12-30T10:00"),
]
# fmt: on
